"""Where a service stands in a provider's feed, moved in the transaction of what the entries caused."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

DDL = ("CREATE TABLE feed_cursor (feed text PRIMARY KEY, position bigint NOT NULL)",)


class CursorMoved(Exception):
    """Another process handled these entries; what this one made of them must not be committed."""


async def read(connection: AsyncConnection, feed: str) -> int:
    """The position of the last entry handled; 0 before the first."""
    row = await connection.execute(
        text("SELECT position FROM feed_cursor WHERE feed = :feed"), {"feed": feed}
    )
    return row.scalar_one_or_none() or 0


async def positions(connection: AsyncConnection) -> dict[str, int]:
    """The position of every feed that has had an entry."""
    rows = await connection.execute(text("SELECT feed, position FROM feed_cursor ORDER BY feed"))
    return {row.feed: row.position for row in rows}


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


async def forget(connection: AsyncConnection, feed: str) -> None:
    """Begin again with the feed's first entry. A `move` from where the cursor stood fails with CursorMoved."""
    await connection.execute(text("DELETE FROM feed_cursor WHERE feed = :feed"), {"feed": feed})
