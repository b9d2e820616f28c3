"""Partitions of the nonces by signed timestamp: made ahead of time, dropped when no timestamp in them can pass any
more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import asyncpg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.persistence.engine import Database, is_away

PARTITION_SECONDS = 600
AHEAD_SECONDS = 3600
MARGIN_SECONDS = 120
MAINTENANCE_SECONDS = 60.0
LOCK = 0x6E6F6E63


async def maintain(database: Database, window_seconds: int, now: float) -> None:
    """Make the partitions that timestamps may fall into from now on for an hour; drop those that have left the
    window.
    """
    first = _start(now - window_seconds - MARGIN_SECONDS)
    last = _start(now + window_seconds + AHEAD_SECONDS)
    async with database.transaction() as connection:
        await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        found = await connection.execute(
            text(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'nonces'::regclass"
            )
        )
        there = {int(name.rpartition("_")[2]) for name in found.scalars()}
        for start in range(first, last + 1, PARTITION_SECONDS):
            if start not in there:
                # Attaching an existing table, unlike creating one in place, lets inserts go on.
                await connection.execute(text(f"CREATE TABLE nonces_{start} (LIKE nonces)"))
                await connection.execute(
                    text(
                        f"ALTER TABLE nonces ATTACH PARTITION nonces_{start}"
                        f" FOR VALUES FROM ({start}) TO ({start + PARTITION_SECONDS})"
                    )
                )
    outdated = sorted(start for start in there if start < first)
    if outdated:
        await _drop(database, outdated)


async def _drop(database: Database, starts: Sequence[int]) -> None:
    """Dropping waits for every reader of the table, such as a backup: if that takes long, it is left for next time."""
    try:
        async with database.transaction() as connection:
            await connection.execute(text("SET LOCAL lock_timeout = '2s'"))
            for start in starts:
                await connection.execute(text(f"DROP TABLE IF EXISTS nonces_{start}"))
    except DBAPIError as error:
        if not isinstance(getattr(error.orig, "__cause__", None), asyncpg.LockNotAvailableError):
            raise
        structlog.get_logger("nonces").warning("partitions_in_use", partitions=len(starts))


async def maintain_for_ever(database: Database, window_seconds: int) -> None:
    log = structlog.get_logger("nonces")
    while True:
        await asyncio.sleep(MAINTENANCE_SECONDS)
        try:
            await maintain(database, window_seconds, time.time())
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("database_away")


def _start(timestamp: float) -> int:
    return int(timestamp) // PARTITION_SECONDS * PARTITION_SECONDS
