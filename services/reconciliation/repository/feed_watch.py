"""Since when each feed has stood at the position at which it was last seen."""

from __future__ import annotations

from sqlalchemy import Double, and_, case, cast, func
from sqlalchemy.dialects.postgresql import insert

from libs.persistence.async_engine import AsyncConnection
from services.reconciliation.tables import feed_watch as table

_INSERT = insert(table)
_SEEN = _INSERT.excluded
_STANDS_STILL = and_(
    table.c.position == _SEEN.position,
    table.c.is_behind,
    _SEEN.is_behind,
    # One since the future was seen before PostgreSQL's clock was set back: the time is taken anew.
    table.c.since <= func.clock_timestamp(),
)
_WATCH = _INSERT.on_conflict_do_update(
    index_elements=[table.c.feed],
    set_={
        "position": _SEEN.position,
        "is_behind": _SEEN.is_behind,
        "since": case((_STANDS_STILL, table.c.since), else_=func.clock_timestamp()),
    },
).returning(cast(func.extract("epoch", func.clock_timestamp() - table.c.since), Double))


async def still_seconds(
    connection: AsyncConnection, feed: str, position: int, *, is_behind: bool
) -> float:
    """How long the feed has been seen at this position and behind the provider. This look is recorded."""
    rows = await connection.execute(
        _WATCH, {"feed": feed, "position": position, "is_behind": is_behind}
    )
    return float(rows.scalar_one())
