"""The position up to which a service applied a provider's feed, moved in the transaction of what the entries cause."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg
from sqlalchemy import Text, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import feed_cursor as table

_IS_OF_FEED = table.c.feed == bindparam("of_feed")
_READ = select(table.c.position).where(_IS_OF_FEED)
_POLL = "SELECT position, state FROM feed_cursor WHERE feed = $1"
_POSITIONS = select(table.c.feed, table.c.position, table.c.state).order_by(table.c.feed)
_START = insert(table).values(position=0).on_conflict_do_nothing()
_MOVE = (
    update(table)
    .where(
        _IS_OF_FEED,
        table.c.position == bindparam("expected"),
        # A restart of the feed changes the state alone.
        table.c.state.is_not_distinct_from(bindparam("expected_state", type_=Text)),
    )
    .values(position=bindparam("to"), state=bindparam("to_state"))
)
_FORGET = delete(table).where(_IS_OF_FEED)


class CursorMoved(Exception):
    """Another process applied these entries; what this process made of them must not be committed."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a feed was applied: the position of the last entry, 0 before the first.

    Args:
        state: `provider_cursor` of `libs.providers.feed_entries.FeedCursor`.
    """

    position: int
    state: str | None = None


async def read(connection: AsyncConnection, feed: str) -> int:
    """The position of the last entry applied; 0 before the first."""
    row = await connection.execute(_READ, {"of_feed": feed})
    return row.scalar_one_or_none() or 0


async def poll(connection: asyncpg.Connection, feed: str) -> Position:
    """As `read`, with the state: the only statement, several times a second, while a feed has no new entries."""
    row = await connection.fetchrow(_POLL, feed)
    return Position(row["position"], row["state"]) if row is not None else Position(0)


async def positions(connection: AsyncConnection) -> dict[str, Position]:
    """The position of every feed that has had an entry."""
    rows = await connection.execute(_POSITIONS)
    return {row.feed: Position(row.position, row.state) for row in rows}


async def move(
    connection: AsyncConnection,
    feed: str,
    *,
    expected: int,
    to: int,
    expected_state: str | None = None,
    state: str | None = None,
) -> None:
    """Move the cursor from `expected`, in the transaction of what the entries between caused.

    Args:
        expected_state: the state that was read with `expected`.

    Raises:
        CursorMoved: it does not stand at `expected`, or has another state.
    """
    if expected == 0:
        await connection.execute(_START, {"feed": feed})
    moved = await connection.execute(
        _MOVE,
        {
            "of_feed": feed,
            "to": to,
            "to_state": state,
            "expected": expected,
            "expected_state": expected_state,
        },
    )
    if moved.rowcount != 1:
        raise CursorMoved(feed)


async def forget(connection: AsyncConnection, feed: str) -> None:
    """Begin again with the feed's first entry. A `move` from where the cursor stood fails with CursorMoved."""
    await connection.execute(_FORGET, {"of_feed": feed})
