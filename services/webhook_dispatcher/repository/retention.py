"""What is removed when the retention is over, besides partitions: deliveries on hold, and notes of redeliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Interval, bindparam, column, delete, select, text

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.earlier_clock import EARLIER_NOW
from services.webhook_dispatcher.tables import redelivery

# A set-based statement: read as SQL, it is one thought.
_DROP_HELD = text(
    """
    WITH looked_at AS (
        SELECT id, event_day, state FROM delivery WHERE id > :after ORDER BY id LIMIT :most
    ), dropped AS (
        DELETE FROM delivery WHERE id = ANY(ARRAY(
            SELECT id FROM delivery
            WHERE id = ANY(ARRAY(SELECT id FROM looked_at WHERE event_day < :before AND state = 'held'))
                AND state = 'held'
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
    )
    SELECT (SELECT count(*) FROM dropped) AS dropped,
        ARRAY(SELECT DISTINCT event_day FROM looked_at
            WHERE event_day < :before AND id NOT IN (SELECT id FROM dropped)) AS days_left,
        (SELECT id FROM looked_at ORDER BY id DESC LIMIT 1) AS last
    """
)
_NOW = select(EARLIER_NOW)
# Rows are deleted by their place in the table: notes are never updated, so a note stays where it is.
_PLACE: ColumnElement[Any] = column("ctid")
_PAST = (
    select(_PLACE)
    .select_from(redelivery)
    .where(redelivery.c.created_at < EARLIER_NOW - bindparam("retention", type_=Interval))
    .order_by(redelivery.c.created_at)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_FORGET_REDELIVERIES = delete(redelivery).where(is_chosen(_PLACE, _PAST))


@dataclass(frozen=True, slots=True)
class HeldDropped:
    """What one batch of `drop_held_deliveries` did.

    Args:
        dropped: how many.
        days_left: the days before, of which there are other deliveries among those that were looked at.
        last: the id of the last that was looked at, None when there was none.
    """

    dropped: int
    days_left: frozenset[date]
    last: UUID | None


async def drop_held_deliveries(
    connection: AsyncConnection, before: date, *, after: UUID, most: int
) -> HeldDropped:
    """Look at up to `most` deliveries in order of their ids, and remove those on hold whose event is of a day before.

    All deliveries are read once a day. An index on the day would have to be written with each delivery, which costs
    more.
    """
    found = await connection.execute(_DROP_HELD, {"before": before, "after": after, "most": most})
    dropped, days_left, last = found.one()
    return HeldDropped(int(dropped), frozenset(days_left), last)


async def first_id_of(connection: AsyncConnection, ago: timedelta) -> UUID:
    """An id before all UUIDv7 that were made in the last `ago`, by the earlier of both clocks."""
    now = (await connection.execute(_NOW)).scalar_one()
    return UUID(int=int((now - ago).timestamp() * 1000) << 80)


async def forget_redeliveries(connection: AsyncConnection, retention: timedelta, most: int) -> int:
    """Remove up to `most` notes that are older, by both clocks, than events within the retention. Returns how many."""
    removed = await connection.execute(_FORGET_REDELIVERIES, {"retention": retention, "most": most})
    return removed.rowcount
