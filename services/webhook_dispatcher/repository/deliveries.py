"""Deliveries of one subscription: those that are not over, and, by the attempt that ended them, those that are.

Callers have made sure that the subscription is the principal's.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Date,
    Row,
    Select,
    any_,
    bindparam,
    case,
    func,
    null,
    select,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.webhook_views import DeliveryStatus
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.models import AttemptRecord, DeliveryRecord
from services.webhook_dispatcher.tables import (
    FAILED,
    HELD,
    PENDING,
    SUCCEEDED,
    attempt,
    delivery,
    endpoint,
    redelivery,
)

_OPEN = (
    select(
        delivery.c.id,
        delivery.c.event_day,
        delivery.c.event_id,
        delivery.c.event_type,
        delivery.c.state.label("status"),
        delivery.c.attempts_made,
        case(
            (delivery.c.state == PENDING, func.greatest(delivery.c.due_at, endpoint.c.open_until))
        ).label("next_attempt_at"),
        delivery.c.created_at,
    )
    .select_from(
        delivery.outerjoin(endpoint, endpoint.c.subscription_id == delivery.c.subscription_id)
    )
    .where(delivery.c.subscription_id == bindparam("subscription_id"))
)
_OVER = select(
    attempt.c.delivery_id.label("id"),
    attempt.c.event_day,
    attempt.c.event_id,
    attempt.c.event_type,
    attempt.c.concluded.label("status"),
    attempt.c.number.label("attempts_made"),
    null().cast(INSTANT).label("next_attempt_at"),
    attempt.c.delivery_created_at.label("created_at"),
).where(attempt.c.subscription_id == bindparam("subscription_id"), attempt.c.concluded.is_not(None))
_FIND = union_all(
    _OPEN.where(delivery.c.id == bindparam("id")),
    _OVER.where(attempt.c.delivery_id == bindparam("id")),
)


def _listing(*parts: Select[Any]) -> tuple[Select[int], Select[*tuple[Any, ...]]]:
    """How many there are in the parts, and a page of them: of each part only so many are read as the page may need."""
    counted = union_all(*parts).subquery("found")
    newest = union_all(
        *(
            part.order_by(part.selected_columns[0].desc()).limit(bindparam("reach"))
            for part in parts
        )
    ).subquery("found")
    page = select(newest).order_by(newest.c.id.desc())
    return (
        select(func.count()).select_from(counted),
        page.limit(bindparam("limit")).offset(bindparam("offset")),
    )


_LISTINGS = {
    None: _listing(_OPEN, _OVER),
    DeliveryStatus.PENDING: _listing(_OPEN.where(delivery.c.state == PENDING)),
    DeliveryStatus.HELD: _listing(_OPEN.where(delivery.c.state == HELD)),
    DeliveryStatus.SUCCEEDED: _listing(_OVER.where(attempt.c.concluded == SUCCEEDED)),
    DeliveryStatus.FAILED: _listing(_OVER.where(attempt.c.concluded == FAILED)),
}
# Each day is a partition, whose index begins with the day.
_ATTEMPTS = (
    select(
        attempt.c.attempted_at,
        attempt.c.duration_ms,
        attempt.c.response_status,
        attempt.c.error,
        attempt.c.response_body,
    )
    .where(
        attempt.c.day == any_(bindparam("days", type_=ARRAY(Date))),
        attempt.c.delivery_id == bindparam("id"),
    )
    .order_by(attempt.c.number)
)
# A set-based statement with two writes: read as SQL, it is one thought.
_ADD_AGAIN = text(
    """
    WITH added AS (
        INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, due_at, created_at)
        SELECT n.id, s.id, s.tenant, e.day, e.id, e.type, 'pending', clock_timestamp(), clock_timestamp()
        FROM unnest(CAST(:ids AS uuid[]), CAST(:days AS date[]), CAST(:event_ids AS uuid[])) AS n (id, day, event_id)
        JOIN event e ON e.day = n.day AND e.id = n.event_id
        JOIN subscription s ON s.id = :subscription_id
        RETURNING id, subscription_id, event_id, created_at
    ), noted AS (
        INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)
        SELECT subscription_id, event_id, id, created_at FROM added
    )
    SELECT count(*) FROM added
    """
)
_NOTE = insert(redelivery).values(created_at=func.clock_timestamp()).on_conflict_do_nothing()


async def find(
    connection: AsyncConnection, subscription_id: UUID, delivery_id: UUID
) -> DeliveryRecord | None:
    found = await connection.execute(_FIND, {"subscription_id": subscription_id, "id": delivery_id})
    row = found.first()
    return None if row is None else _record(row)


async def page(
    connection: AsyncConnection,
    subscription_id: UUID,
    status: DeliveryStatus | None,
    *,
    limit: int,
    offset: int,
) -> tuple[list[DeliveryRecord], int]:
    """The newest first, and how many there are in all. To be read in a snapshot, so that a delivery that ends meanwhile
    is listed once.
    """
    count, rows = _LISTINGS[status]
    of_subscription = {"subscription_id": subscription_id}
    total = int((await connection.execute(count, of_subscription)).scalar_one())
    if offset >= total:
        return [], total  # a page far beyond the end would read all that is before it
    found = await connection.execute(
        rows, {**of_subscription, "reach": limit + offset, "limit": limit, "offset": offset}
    )
    return [_record(row) for row in found], total


async def attempts(connection: AsyncConnection, delivery: DeliveryRecord) -> list[AttemptRecord]:
    """Those that are within the retention, in their order."""
    first, last = delivery.created_at.astimezone(UTC).date(), datetime.now(UTC).date()
    days = [first + timedelta(days=n) for n in range(-1, (last - first).days + 2)]
    rows = await connection.execute(_ATTEMPTS, {"days": days, "id": delivery.id})
    return [AttemptRecord(*row) for row in rows]


async def add_again(
    connection: AsyncConnection,
    subscription_id: UUID,
    deliveries: Sequence[tuple[UUID, date, UUID]],
) -> int:
    """Add deliveries, due now, of events that the subscription had before: the id of each with the day and id of its
    event. Returns how many; an event that is no longer there gets none.
    """
    added = await connection.execute(
        _ADD_AGAIN,
        {
            "subscription_id": subscription_id,
            "ids": [delivery_id for delivery_id, _, _ in deliveries],
            "days": [day for _, day, _ in deliveries],
            "event_ids": [event_id for _, _, event_id in deliveries],
        },
    )
    return int(added.scalar_one())


async def note(connection: AsyncConnection, subscription_id: UUID, known: DeliveryRecord) -> None:
    """Note a delivery whose event gets another one, so that the result of either is found by the event."""
    await connection.execute(
        _NOTE,
        {
            "subscription_id": subscription_id,
            "event_id": known.event_id,
            "delivery_id": known.id,
        },
    )


def _record(row: Row[*tuple[Any, ...]]) -> DeliveryRecord:
    values = row._asdict()
    return DeliveryRecord(**{**values, "status": DeliveryStatus(values["status"])})
