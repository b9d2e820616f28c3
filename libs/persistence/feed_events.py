"""Ids of entries that a feed has applied, of a provider that may deliver one twice.

The ids of the last `KEPT` positions are kept. An older entry that comes again is applied again: it changes nothing
where handlers compare a report with what they know, and has its effect twice where they do not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import BigInteger, Text, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import feed_event as table

KEPT = 10_000

_APPLIED = select(table.c.event_id).where(
    table.c.feed == bindparam("of_feed"),
    table.c.event_id == func.any(bindparam("ids", type_=ARRAY(Text))),
)
_ADD = insert(table).on_conflict_do_nothing()
_FORGET = delete(table).where(
    table.c.feed == bindparam("of_feed"), table.c.position <= bindparam("up_to")
)
_MOVE_UP = (
    update(table)
    .where(table.c.feed == bindparam("of_feed"))
    .values(position=table.c.position + bindparam("by", type_=BigInteger))
)


async def applied(connection: AsyncConnection, feed: str, ids: Collection[str]) -> set[str]:
    """Those of the ids whose entries the feed has applied."""
    rows = await connection.execute(_APPLIED, {"of_feed": feed, "ids": list(ids)})
    return set(rows.scalars())


async def add(connection: AsyncConnection, feed: str, positions: Mapping[str, int]) -> None:
    """Record the entries with these ids as applied, in the transaction of what they caused.

    Args:
        positions: by id; at least one.
    """
    await connection.execute(
        _ADD,
        [
            {"feed": feed, "event_id": event_id, "position": position}
            for event_id, position in positions.items()
        ],
    )
    await connection.execute(_FORGET, {"of_feed": feed, "up_to": max(positions.values()) - KEPT})


async def keep_longer(connection: AsyncConnection, feed: str, positions: int) -> None:
    """Keep the ids for `positions` more entries. For a feed that is read again from its first entry, which meets the
    newest ids last.
    """
    await connection.execute(_MOVE_UP, {"of_feed": feed, "by": positions})
