"""Stops of a feed, and entries that operators decided to skip.

A stop has the entry's position, its type, what was wrong with it and its outline (names and types of its fields), but
none of its values: entries of an identity provider can hold personal data, the provider keeps the entry itself, and
its position is enough to look it up there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Text, and_, bindparam, case, delete, extract, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from libs.persistence import feed_events
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import feed_cursor, feed_skip, feed_stop

_NEW = insert(feed_stop)
_IS_SAME = feed_stop.c.position == _NEW.excluded.position
_RECORD = _NEW.on_conflict_do_update(
    index_elements=[feed_stop.c.feed],
    set_={
        "position": _NEW.excluded.position,
        "entry_position": _NEW.excluded.entry_position,
        "entry_type": _NEW.excluded.entry_type,
        "event_id": _NEW.excluded.event_id,
        "error": _NEW.excluded.error,
        "outline": _NEW.excluded.outline,
        "since": case((_IS_SAME, feed_stop.c.since), else_=_NEW.excluded.since),
        "tries": case((_IS_SAME, feed_stop.c.tries + 1), else_=1),
        "tried_at": _NEW.excluded.tried_at,
    },
).returning(extract("epoch", func.clock_timestamp() - feed_stop.c.since))
_CLEAR = delete(feed_stop).where(feed_stop.c.feed == bindparam("of_feed"))
_TAKE_SKIP = (
    update(feed_skip)
    .where(
        feed_skip.c.feed == bindparam("of_feed"),
        feed_skip.c.skipped_at.is_(None),
        # By the entry's event id where it has one: an entry that came late may have taken its position since the stop.
        or_(
            feed_skip.c.event_id == bindparam("of_event", type_=Text),
            and_(feed_skip.c.event_id.is_(None), feed_skip.c.position == bindparam("at")),
        ),
    )
    .values(skipped_at=func.clock_timestamp())
    .returning(feed_skip.c.reason)
)
_DECIDED = insert(feed_skip).from_select(
    ["feed", "position", "reason", "asked_by", "entry_type", "event_id", "error", "outline"],
    select(
        feed_stop.c.feed,
        feed_stop.c.entry_position,
        bindparam("why", type_=Text),
        bindparam("by", type_=Text),
        feed_stop.c.entry_type,
        feed_stop.c.event_id,
        feed_stop.c.error,
        feed_stop.c.outline,
    ).where(
        feed_stop.c.feed == bindparam("of_feed"), feed_stop.c.entry_position == bindparam("at")
    ),
)
_REQUEST_SKIP = _DECIDED.on_conflict_do_update(
    index_elements=[feed_skip.c.feed, feed_skip.c.position],
    set_={
        **{
            name: _DECIDED.excluded[name]
            for name in ("reason", "asked_by", "entry_type", "event_id", "error", "outline")
        },
        "asked_at": func.clock_timestamp(),
    },
    # A decision on another entry that had this position is replaced: that entry has another one now, and is decided on
    # anew where it stops the feed.
    where=and_(
        feed_skip.c.skipped_at.is_(None),
        feed_skip.c.event_id.is_not(None),
        feed_skip.c.event_id.is_distinct_from(_DECIDED.excluded.event_id),
    ),
).returning(feed_skip.c.position)
_RESTART = (
    update(feed_cursor)
    .where(
        feed_cursor.c.feed == bindparam("of_feed"),
        feed_cursor.c.state.is_not(None),
        select(feed_stop.c.feed)
        .where(feed_stop.c.feed == feed_cursor.c.feed, feed_stop.c.entry_position.is_(None))
        .exists(),
    )
    .values(state=None)
    .returning(feed_cursor.c.position)
)
_FEED = func.coalesce(feed_cursor.c.feed, feed_stop.c.feed).label("feed")
_FEED_STATES = (
    select(
        _FEED,
        func.coalesce(feed_cursor.c.position, 0).label("position"),
        feed_stop.c.entry_position,
        feed_stop.c.entry_type,
        feed_stop.c.error,
        feed_stop.c.outline,
        feed_stop.c.since,
        feed_stop.c.tried_at,
        feed_stop.c.tries,
    )
    .select_from(feed_cursor.join(feed_stop, feed_stop.c.feed == feed_cursor.c.feed, full=True))
    .order_by(_FEED)
)
_SKIPS = (
    select(
        feed_skip.c.position,
        feed_skip.c.reason,
        feed_skip.c.asked_by,
        feed_skip.c.asked_at,
        feed_skip.c.entry_type,
        feed_skip.c.error,
        feed_skip.c.skipped_at,
    )
    .where(feed_skip.c.feed == bindparam("of_feed"))
    .order_by(feed_skip.c.position.desc())
    .limit(bindparam("most"))
)


class ForgottenEvents(Exception):
    """The ids of the feed's first entries are forgotten, so that these would be applied a second time."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a feed is stopped after `position`.

    Args:
        entry_position: of the entry at fault; None when no entry is, and there is nothing to skip.
        event_id: of the entry, where the provider may deliver one late or twice; see `libs.persistence.feed_events`.
        error: a sentence without values of the entry.
        outline: the entry's fields and their types, as JSON.
    """

    position: int
    entry_position: int | None
    entry_type: str | None
    error: str
    outline: str | None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class FeedState:
    """A feed as an operator sees it; `stop` and its times are None while it is not stopped."""

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
    """Record that the feed is stopped. Returns for how many seconds it has been, by the database's clock."""
    seconds = await connection.execute(
        _RECORD,
        {
            "feed": feed,
            "position": stop.position,
            "entry_position": stop.entry_position,
            "entry_type": stop.entry_type,
            "event_id": stop.event_id,
            "error": stop.error,
            "outline": stop.outline,
        },
    )
    return float(seconds.scalar_one())


async def clear(connection: AsyncConnection, feed: str) -> None:
    """Record that the feed is not stopped."""
    await connection.execute(_CLEAR, {"of_feed": feed})


async def take_skip(
    connection: AsyncConnection, feed: str, position: int, event_id: str | None
) -> str | None:
    """Mark the requested skip of an entry as done. Its reason; None when no operator requested it."""
    entry = {"of_feed": feed, "at": position, "of_event": event_id}
    taken = await connection.execute(_TAKE_SKIP, entry)
    reason: str | None = taken.scalars().first()
    return reason


async def request_skip(
    connection: AsyncConnection, feed: str, position: int, *, reason: str, asked_by: str
) -> bool:
    """Record an operator's decision to skip the entry that stops the feed.

    False when no entry at `position` stops the feed, or an operator requested the skip before.
    """
    requested = await connection.execute(
        _REQUEST_SKIP, {"of_feed": feed, "at": position, "why": reason, "by": asked_by}
    )
    return requested.first() is not None


async def restart(connection: AsyncConnection, feed: str, *, apply_again: bool = False) -> bool:
    """Have a stopped feed read from its provider's first entry; its positions go on from where it stands.

    Entries whose ids are kept are not applied again.

    Args:
        apply_again: restart it also when ids are forgotten, so that their entries are applied a second time.

    Returns:
        False when it is not stopped, an entry stops it, or the provider's positions say where it goes on.

    Raises:
        ForgottenEvents: without `apply_again`. The transaction must not be committed.
    """
    restarted = await connection.execute(_RESTART, {"of_feed": feed})
    position = restarted.scalar_one_or_none()
    if position is None:
        return False
    if position > feed_events.KEPT and not apply_again:
        raise ForgottenEvents(feed)
    await feed_events.keep_longer(connection, feed, position)
    return True


async def feed_states(connection: AsyncConnection) -> list[FeedState]:
    """All feeds of the service."""
    rows = (await connection.execute(_FEED_STATES)).all()
    return [
        FeedState(
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
    """Entries that operators decided to skip, the latest position first."""
    rows = (await connection.execute(_SKIPS, {"of_feed": feed, "most": most})).all()
    return [Skip(**row._asdict()) for row in rows]
