"""Partitions of the nonces by signed timestamp: made ahead of time, dropped when no timestamp in them can pass any
more.

They go by the database's clock, so a gateway whose clock is wrong neither drops nor lacks one; while the database's is
so far ahead that all requests would be below the floor, they stay as they are. `nonce_bounds` says which timestamps
have a partition. Its floor only rises: a partition that was dropped is not made again, and a timestamp below the floor
is refused when its nonce would be recorded, independent of the clock and the window of the gateway.

The gateway may neither define tables nor change the bounds: it calls functions of the schema's owner that do only this
(`migrations/versions/0007_nonce_floor.py`, `0004_grants.py`).
"""

from __future__ import annotations

import time
from typing import NoReturn

import asyncpg
import structlog
from sqlalchemy import BigInteger, bindparam, func, select
from sqlalchemy.exc import DBAPIError

from libs.handling import clock
from libs.handling.periodic import repeat
from libs.persistence.engine import Database

PARTITION_SECONDS = 600
AHEAD_SECONDS = 3600
MARGIN_SECONDS = 120
MAINTENANCE_SECONDS = 60.0

_KEEP = select(
    func.keep_nonce_partitions(
        bindparam("floor", type_=BigInteger), bindparam("ceiling", type_=BigInteger)
    )
)
_DROP = select(func.drop_nonce_partitions())


async def maintain(database: Database, window_seconds: int) -> None:
    """Make and drop partitions as of now, by the database's clock; note how far this process's is off it.

    Nothing is made or dropped where the floor would lie in the future of this process: it never falls, so that each
    request would be refused for as long as the clock was ahead. There are partitions for an hour.
    """
    now = await clock.measure(database)
    if _floor(now, window_seconds) <= time.time():
        await maintain_as_of(database, window_seconds, now)


async def maintain_as_of(database: Database, window_seconds: int, now: float) -> None:
    """Make the partitions that timestamps may fall into from `now` on for an hour; drop those that have left the
    window.
    """
    bounds = {
        "floor": _floor(now, window_seconds),
        "ceiling": _start(now + window_seconds + AHEAD_SECONDS) + PARTITION_SECONDS,
    }
    async with database.transaction() as connection:
        await connection.execute(_KEEP, bounds)
    # The floor is above what is dropped, in a transaction that has committed: a request that is admitted afterwards
    # sees it.
    await _drop_outdated(database)


async def _drop_outdated(database: Database) -> None:
    """Dropping waits for every reader of the table, such as a dump, and every admission for the dropping: after a tenth
    of a second (`migrations/versions/0017_short_waits_for_readers.py`) it is left for next time.
    """
    try:
        async with database.transaction() as connection:
            await connection.execute(_DROP)
    except DBAPIError as error:
        if not isinstance(getattr(error.orig, "__cause__", None), asyncpg.LockNotAvailableError):
            raise
        structlog.get_logger("nonces").warning("partitions_in_use")


async def maintain_for_ever(database: Database, window_seconds: int) -> NoReturn:
    await repeat("nonces", lambda: maintain(database, window_seconds), MAINTENANCE_SECONDS)


def _floor(now: float, window_seconds: int) -> int:
    return _start(now - window_seconds - MARGIN_SECONDS)


def _start(timestamp: float) -> int:
    return int(timestamp) // PARTITION_SECONDS * PARTITION_SECONDS
