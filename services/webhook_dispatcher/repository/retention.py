"""What is removed when the retention is over, besides partitions: deliveries, and notes of redeliveries."""

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
_DROP_DELIVERIES = text(
    """
    WITH looked_at AS (
        SELECT id, event_day, state FROM delivery WHERE id > :after ORDER BY id LIMIT :most
    ), dropped AS (
        DELETE FROM delivery WHERE id = ANY(ARRAY(
            SELECT id FROM delivery
            WHERE id = ANY(ARRAY(
                SELECT id FROM looked_at
                WHERE event_day < :pending_before OR (event_day < :before AND state = 'held')
            )) AND (event_day < :pending_before OR state = 'held')
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id, state
    )
    SELECT (SELECT count(*) FROM dropped WHERE state = 'held') AS held,
        (SELECT count(*) FROM dropped WHERE state = 'pending') AS pending,
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
class Dropped:
    """What one batch of `drop_deliveries` did.

    Args:
        held: how many of those on hold were removed.
        pending: likewise.
        days_left: the days before, of which there are other deliveries among those that were looked at.
        last: the id of the last that was looked at, None when there was none.
    """

    held: int
    pending: int
    days_left: frozenset[date]
    last: UUID | None


async def drop_deliveries(
    connection: AsyncConnection, before: date, *, pending_before: date, after: UUID, most: int
) -> Dropped:
    """Look at up to `most` deliveries in order of their ids, and remove those on hold whose event is of a day before,
    and all whose event is of a day before `pending_before`, the earlier day. An attempt that is under way is not
    recorded then.

    All deliveries are read once a day. An index on the day would have to be written with each delivery, which costs
    more.
    """
    found = await connection.execute(
        _DROP_DELIVERIES,
        {"before": before, "pending_before": pending_before, "after": after, "most": most},
    )
    held, pending, days_left, last = found.one()
    return Dropped(int(held), int(pending), frozenset(days_left), last)


async def first_id_of(connection: AsyncConnection, ago: timedelta) -> UUID:
    """An id before all UUIDv7 that were made in the last `ago`, by the earlier of both clocks."""
    now = (await connection.execute(_NOW)).scalar_one()
    return UUID(int=int((now - ago).timestamp() * 1000) << 80)


async def forget_redeliveries(connection: AsyncConnection, retention: timedelta, most: int) -> int:
    """Remove up to `most` notes that are older, by both clocks, than events within the retention. Returns how many."""
    removed = await connection.execute(_FORGET_REDELIVERIES, {"retention": retention, "most": most})
    return removed.rowcount
