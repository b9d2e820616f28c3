"""Where and since when a feed stands still, and which entries an operator has said to skip.

A stop has the entry's position, its type, what was wrong with it and its outline (names and types of its fields), but
none of its values: entries of an identity provider can hold personal data, the provider keeps the entry itself, and
its position is enough to look it up there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

DDL = (
    """
    CREATE TABLE feed_stop (
        feed text PRIMARY KEY,
        position bigint NOT NULL,
        entry_position bigint,
        entry_type text,
        error text NOT NULL,
        outline text,
        since timestamptz NOT NULL DEFAULT clock_timestamp(),
        tried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        tries bigint NOT NULL DEFAULT 1
    )
    """,
    """
    CREATE TABLE feed_skip (
        feed text NOT NULL,
        position bigint NOT NULL,
        reason text NOT NULL,
        asked_by text NOT NULL,
        asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        entry_type text,
        error text NOT NULL,
        outline text,
        skipped_at timestamptz,
        PRIMARY KEY (feed, position)
    )
    """,
)

_RECORD = text(
    """
    INSERT INTO feed_stop AS stop (feed, position, entry_position, entry_type, error, outline)
    VALUES (:feed, :position, :entry_position, :entry_type, :error, :outline)
    ON CONFLICT (feed) DO UPDATE SET position = excluded.position, entry_position = excluded.entry_position,
        entry_type = excluded.entry_type, error = excluded.error, outline = excluded.outline,
        since = CASE WHEN stop.position = excluded.position THEN stop.since ELSE excluded.since END,
        tries = CASE WHEN stop.position = excluded.position THEN stop.tries + 1 ELSE 1 END,
        tried_at = excluded.tried_at
    RETURNING extract(epoch FROM clock_timestamp() - since)
    """
)
_CLEAR = text("DELETE FROM feed_stop WHERE feed = :feed")
_TAKE_SKIP = text(
    "UPDATE feed_skip SET skipped_at = clock_timestamp()"
    " WHERE feed = :feed AND position = :position AND skipped_at IS NULL RETURNING reason"
)
_ASK_TO_SKIP = text(
    """
    INSERT INTO feed_skip (feed, position, reason, asked_by, entry_type, error, outline)
    SELECT feed, entry_position, :reason, :asked_by, entry_type, error, outline
    FROM feed_stop WHERE feed = :feed AND entry_position = :position
    ON CONFLICT DO NOTHING
    RETURNING position
    """
)
_STANDINGS = text(
    """
    SELECT coalesce(c.feed, s.feed) AS feed, coalesce(c.position, 0) AS position, s.entry_position, s.entry_type,
        s.error, s.outline, s.since, s.tried_at, s.tries
    FROM feed_cursor c FULL JOIN feed_stop s ON s.feed = c.feed ORDER BY 1
    """
)
_SKIPS = text(
    "SELECT position, reason, asked_by, asked_at, entry_type, error, skipped_at FROM feed_skip"
    " WHERE feed = :feed ORDER BY position DESC LIMIT :most"
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a feed stands still after `position`.

    Args:
        entry_position: of the entry at fault; None when no entry is, and there is nothing to skip.
        error: a sentence without values of the entry.
        outline: the entry's fields and their types, as JSON.
    """

    position: int
    entry_position: int | None
    entry_type: str | None
    error: str
    outline: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """A feed as an operator sees it; `stop` and its times are None while the feed moves."""

    feed: str
    position: int
    stop: Stop | None
    since: datetime | None
    tried_at: datetime | None
    tries: int | None


@dataclass(frozen=True, slots=True)
class Skip:
    """An operator's decision; `skipped_at` is None until the feed has moved past the entry."""

    position: int
    reason: str
    asked_by: str
    asked_at: datetime
    entry_type: str | None
    error: str
    skipped_at: datetime | None


async def record(connection: AsyncConnection, feed: str, stop: Stop) -> float:
    """Record that the feed stands still. For how many seconds it has, by the database's clock."""
    seconds = await connection.execute(
        _RECORD,
        {
            "feed": feed,
            "position": stop.position,
            "entry_position": stop.entry_position,
            "entry_type": stop.entry_type,
            "error": stop.error,
            "outline": stop.outline,
        },
    )
    return float(seconds.scalar_one())


async def clear(connection: AsyncConnection, feed: str) -> None:
    """The feed moves."""
    await connection.execute(_CLEAR, {"feed": feed})


async def take_skip(connection: AsyncConnection, feed: str, position: int) -> str | None:
    """The reason why an operator has this entry skipped, marked as done; None when no operator has asked for it."""
    taken = await connection.execute(_TAKE_SKIP, {"feed": feed, "position": position})
    reason: str | None = taken.scalar_one_or_none()
    return reason


async def ask_to_skip(
    connection: AsyncConnection, feed: str, position: int, *, reason: str, asked_by: str
) -> bool:
    """Have the entry skipped at which the feed stands still.

    False when the feed does not stand still there, or an operator has asked for it before.
    """
    asked = await connection.execute(
        _ASK_TO_SKIP,
        {"feed": feed, "position": position, "reason": reason, "asked_by": asked_by},
    )
    return asked.first() is not None


async def standings(connection: AsyncConnection) -> list[Standing]:
    """All feeds of the service."""
    rows = (await connection.execute(_STANDINGS)).all()
    return [
        Standing(
            feed=row.feed,
            position=row.position,
            stop=None
            if row.error is None
            else Stop(row.position, row.entry_position, row.entry_type, row.error, row.outline),
            since=row.since,
            tried_at=row.tried_at,
            tries=row.tries,
        )
        for row in rows
    ]


async def skips(connection: AsyncConnection, feed: str, *, most: int) -> list[Skip]:
    """Entries that operators have said to skip, the newest first."""
    rows = (await connection.execute(_SKIPS, {"feed": feed, "most": most})).all()
    return [Skip(**row._asdict()) for row in rows]
