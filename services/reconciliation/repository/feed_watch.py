"""Since when each feed has stood where it stands."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_WATCH = text(
    """
    INSERT INTO feed_watch AS known (feed, position, is_behind) VALUES (:feed, :position, :is_behind)
    ON CONFLICT (feed) DO UPDATE SET position = excluded.position, is_behind = excluded.is_behind,
        since = CASE WHEN known.position = excluded.position AND known.is_behind AND excluded.is_behind
            THEN known.since ELSE clock_timestamp() END
    RETURNING CAST(extract(epoch FROM clock_timestamp() - since) AS double precision)
    """
)


async def still_seconds(
    connection: AsyncConnection, feed: str, position: int, *, is_behind: bool
) -> float:
    """How long the feed has been seen at this position and behind the provider; this look is recorded."""
    rows = await connection.execute(
        _WATCH, {"feed": feed, "position": position, "is_behind": is_behind}
    )
    return float(rows.scalar_one())
