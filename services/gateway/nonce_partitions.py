"""Partitions of the nonces by signed timestamp: made ahead of time, dropped when no timestamp in them can pass any
more.

They go by the database's clock, so a gateway whose clock is wrong neither drops nor lacks one. `nonce_bounds` says
which timestamps have a partition. Its floor only rises: a partition that was dropped is not made again, and a timestamp
below the floor is refused when its nonce would be recorded, independent of the clock and the window of the gateway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import asyncpg
import structlog
from prometheus_client import Gauge
from sqlalchemy import Double, bindparam, cast, extract, func, or_, select, text, update
from sqlalchemy.exc import DBAPIError

from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from services.gateway.tables import nonce_bounds

PARTITION_SECONDS = 600
AHEAD_SECONDS = 3600
MARGIN_SECONDS = 120
MAINTENANCE_SECONDS = 60.0
LOCK = 0x6E6F6E63
CLOCK_TOLERANCE_SECONDS = 30.0

CLOCK_AHEAD_SECONDS = Gauge(
    "bankside_gateway_clock_ahead_seconds", "This process's clock less the database's."
)

_NOW = select(cast(extract("epoch", func.clock_timestamp()), Double))
_FLOOR = select(nonce_bounds.c.floor).with_for_update()
_PARTITIONS = text(
    "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'nonces'::regclass"
)
_MOVE = (
    update(nonce_bounds)
    .where(
        or_(
            nonce_bounds.c.floor < bindparam("new_floor"),
            nonce_bounds.c.ceiling < bindparam("new_ceiling"),
        )
    )
    .values(
        floor=func.greatest(nonce_bounds.c.floor, bindparam("new_floor")),
        ceiling=func.greatest(nonce_bounds.c.ceiling, bindparam("new_ceiling")),
    )
)
_CREATE = "CREATE TABLE nonces_{start} (LIKE nonces)"
_ATTACH = "ALTER TABLE nonces ATTACH PARTITION nonces_{start} FOR VALUES FROM ({start}) TO ({end})"
_DROP_PARTITION = "DROP TABLE IF EXISTS nonces_{start}"
_IMPATIENT = text("SET LOCAL lock_timeout = '2s'")
_ALONE = select(func.pg_advisory_xact_lock(LOCK))


async def maintain(database: Database, window_seconds: int) -> None:
    """Make and drop partitions as of now, by the database's clock."""
    async with database.transaction() as connection:
        now = float((await connection.execute(_NOW)).scalar_one())
    ahead = time.time() - now
    CLOCK_AHEAD_SECONDS.set(ahead)
    if abs(ahead) > CLOCK_TOLERANCE_SECONDS:
        structlog.get_logger("nonces").warning("clock_differs", ahead_seconds=round(ahead))
    await maintain_as_of(database, window_seconds, now)


async def maintain_as_of(database: Database, window_seconds: int, now: float) -> None:
    """Make the partitions that timestamps may fall into from `now` on for an hour; drop those that have left the
    window.
    """
    ceiling = _start(now + window_seconds + AHEAD_SECONDS) + PARTITION_SECONDS
    async with database.transaction() as connection:
        await connection.execute(_IMPATIENT)
        await connection.execute(_ALONE)
        recorded_floor = int((await connection.execute(_FLOOR)).scalar_one())
        floor = max(recorded_floor, _start(now - window_seconds - MARGIN_SECONDS))
        found = await connection.execute(_PARTITIONS)
        there = {int(name.rpartition("_")[2]) for name in found.scalars()}
        for start in range(floor, ceiling, PARTITION_SECONDS):
            if start not in there:
                # Attaching an existing table, unlike creating one in place, lets inserts go on.
                bounds = {"start": start, "end": start + PARTITION_SECONDS}
                await connection.execute(text(_CREATE.format(**bounds)))
                await connection.execute(text(_ATTACH.format(**bounds)))
        await connection.execute(_MOVE, {"new_floor": floor, "new_ceiling": max(floor, ceiling)})
    outdated = sorted(start for start in there if start < floor)
    if outdated:
        await _drop(database, outdated)


async def _drop(database: Database, starts: Sequence[int]) -> None:
    """Dropping waits for every reader of the table, such as a backup: if that takes long, it is left for next time.

    The floor is above them already, in a transaction that has committed: a request that is admitted after they are gone
    sees it.
    """
    try:
        async with database.transaction() as connection:
            await connection.execute(_IMPATIENT)
            for start in starts:
                await connection.execute(text(_DROP_PARTITION.format(start=start)))
    except DBAPIError as error:
        if not isinstance(getattr(error.orig, "__cause__", None), asyncpg.LockNotAvailableError):
            raise
        structlog.get_logger("nonces").warning("partitions_in_use", partitions=len(starts))


async def maintain_for_ever(database: Database, window_seconds: int) -> None:
    log = structlog.get_logger("nonces")
    while True:
        await asyncio.sleep(MAINTENANCE_SECONDS)
        try:
            await maintain(database, window_seconds)
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("database_away")


def _start(timestamp: float) -> int:
    return int(timestamp) // PARTITION_SECONDS * PARTITION_SECONDS
