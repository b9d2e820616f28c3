"""Where a service stands in a provider's feed, moved in the transaction of what the entries caused."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.engine import Database

DDL = ("CREATE TABLE feed_cursor (feed text PRIMARY KEY, position bigint NOT NULL)",)

ELECTION_SECONDS = 1.0
UNLOCK_SECONDS = 2.0


class CursorMoved(Exception):
    """Another process handled these entries; what this one made of them must not be committed."""


class LeadershipLost(Exception):
    """The connection that held the advisory lock is gone."""


async def read(connection: AsyncConnection, feed: str) -> int:
    """The position of the last entry handled; 0 before the first."""
    row = await connection.execute(
        text("SELECT position FROM feed_cursor WHERE feed = :feed"), {"feed": feed}
    )
    return row.scalar_one_or_none() or 0


async def move(connection: AsyncConnection, feed: str, *, expected: int, to: int) -> None:
    """Move the cursor from `expected`, in the transaction of what the entries between caused.

    Raises:
        CursorMoved: it does not stand at `expected`.
    """
    if expected == 0:
        await connection.execute(
            text("INSERT INTO feed_cursor VALUES (:feed, 0) ON CONFLICT DO NOTHING"),
            {"feed": feed},
        )
    moved = await connection.execute(
        text("UPDATE feed_cursor SET position = :to WHERE feed = :feed AND position = :expected"),
        {"feed": feed, "to": to, "expected": expected},
    )
    if moved.rowcount != 1:
        raise CursorMoved(feed)


@asynccontextmanager
async def leadership(database: Database, name: str) -> AsyncIterator[AsyncConnection]:
    """Wait until this process holds the advisory lock `name` in its schema; hold it for the body.

    Yields the connection that holds the lock, in autocommit: work that only the leader may do goes over it, so that
    it fails when leadership is lost.
    """
    key = zlib.crc32(name.encode()) - 2**31
    async with database.autocommit() as connection:
        while not await _try_lock(connection, key):  # noqa: ASYNC110 - the other holder is another process
            await asyncio.sleep(ELECTION_SECONDS)
        try:
            yield connection
        finally:
            await asyncio.shield(_unlock(connection, key))


async def _try_lock(connection: AsyncConnection, key: int) -> bool:
    statement = text("SELECT pg_try_advisory_lock(hashtext(current_schema()), :key)")
    return bool((await connection.execute(statement, {"key": key})).scalar_one())


async def _unlock(connection: AsyncConnection, key: int) -> None:
    """Raises nothing, since it may run because of a cancellation, which must not be lost: a connection that cannot be
    unlocked is thrown away, and the lock goes with it.
    """
    if connection.invalidated or connection.closed:
        return
    statement = text("SELECT pg_advisory_unlock(hashtext(current_schema()), :key)")
    try:
        async with asyncio.timeout(UNLOCK_SECONDS):
            await connection.execute(statement, {"key": key})
    except Exception as error:
        structlog.get_logger("leadership").warning("lock_dropped", error=type(error).__name__)
        await connection.invalidate()
