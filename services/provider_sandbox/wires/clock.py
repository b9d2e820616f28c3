"""Wires are settled when their time has come. It is written in their rows, so a restart changes nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NoReturn

import structlog

from libs.runtime.crash import crash_point
from services.provider_sandbox.database import UNAVAILABLE, Connection, Database
from services.provider_sandbox.wires.settling import settle

AT_ONCE = 200
SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0
OUTAGE_PAUSE_SECONDS = 1.0
"""Before another try, when the database was out of reach."""

log = structlog.get_logger("provider_sandbox")

_NEXT_DUE_SECONDS = """
    SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 FROM wire WHERE state = 'submitted'
"""
_DUE = """
    SELECT * FROM wire WHERE state = 'submitted' AND due_at <= clock_timestamp()
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
"""


async def settle_due(connection: Connection) -> int:
    """Settle wires that are due, without those that another transaction has locked; how many there were."""
    wires = await connection.fetch(_DUE, AT_ONCE)
    if wires:
        await settle(connection, wires)
    return len(wires)


async def _settle(database: Database, longest_pause: float) -> float:
    """Settle what is due; the seconds until more may be."""
    async with database.reading() as connection:
        due_in: float | None = await connection.fetchval(_NEXT_DUE_SECONDS)
    if due_in is None or due_in > 0:
        return longest_pause if due_in is None else min(due_in, longest_pause)
    async with database.transaction() as connection:
        settled = await settle_due(connection)
        if settled:
            crash_point("sandbox.wires_unsettled")
    if settled:
        crash_point("sandbox.wires_settled")
    return 0.0 if settled == AT_ONCE else SHORTEST_PAUSE_SECONDS


async def run(database: Database, wire_takes: timedelta) -> NoReturn:
    """Settle due wires, for ever.

    Args:
        wire_takes: how long after it was accepted a wire is due. None that is accepted during half of it is due then,
            so that is the longest pause.
    """
    half = wire_takes.total_seconds() / 2
    longest_pause = min(max(half, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
    while True:
        try:
            pause = await _settle(database, longest_pause)
        except UNAVAILABLE as error:
            log.warning("wires_not_settled", error=type(error).__name__)
            pause = OUTAGE_PAUSE_SECONDS
        await asyncio.sleep(pause)
