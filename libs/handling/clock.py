"""How far a process's clock is off its database's, as a metric and in the log.

Deadlines travel as times of the caller's clock, and each process compares them with its own: deploy/RUNBOOK.md says
from which difference on what fails (*BanksideClockOff*).
"""

from __future__ import annotations

import time
from typing import NoReturn

import structlog
from prometheus_client import Gauge
from sqlalchemy import Double, cast, extract, func, select

from libs.handling.periodic import repeat
from libs.persistence.engine import Database

MEASURE_SECONDS = 60.0
TOLERANCE_SECONDS = 1.5
"""Two processes that are off by as much in opposite directions differ by 3 s, from which on answers come too late."""

CLOCK_AHEAD_SECONDS = Gauge(
    "bankside_clock_ahead_seconds", "This process's clock less the database's."
)

_NOW = select(cast(extract("epoch", func.clock_timestamp()), Double))


async def measure(database: Database) -> float:
    """Compare the clocks; the database's time (Unix seconds)."""
    async with database.transaction() as connection:
        asked_at = time.time()
        now = float((await connection.execute(_NOW)).scalar_one())
        ahead = (asked_at + time.time()) / 2 - now
    CLOCK_AHEAD_SECONDS.set(ahead)
    if abs(ahead) > TOLERANCE_SECONDS:
        structlog.get_logger("clock").warning("clock_differs", ahead_seconds=round(ahead, 1))
    return now


async def measure_for_ever(database: Database) -> NoReturn:
    await repeat("clock", lambda: measure(database), MEASURE_SECONDS)
