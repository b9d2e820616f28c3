"""The events of a request and of what it made, with their deliveries and attempts, of any tenant: for operators."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Date, Select, Text, any_, bindparam, select, union_all

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.webhook_dispatcher.models import DeliveryRecord
from services.webhook_dispatcher.repository.deliveries import OPEN, OVER, days_since, record_of
from services.webhook_dispatcher.tables import attempt, delivery, event

MOST_EVENTS = 50
MOST_DELIVERIES = 100
MOST_ATTEMPTS = 300
LOOKED_AT = 1_000
"""Events with one request id, which callers choose, or of some resources."""

_E = event.c
_IDS = bindparam("ids", type_=ARRAY(UUID_TYPE))


def _events(condition: ColumnElement[bool]) -> Select[Any]:
    """The first ones of those that are looked at; of more than `LOOKED_AT`, any are."""
    looked_at = (
        select(
            _E.position,
            _E.day,
            _E.id,
            _E.tenant,
            _E.customer_id,
            _E.type,
            _E.resource_id,
            _E.recorded_at,
            _E.request_id,
        )
        .where(condition)
        .limit(LOOKED_AT)
        .subquery("looked_at")
    )
    return select(looked_at).order_by(looked_at.c.position).limit(MOST_EVENTS + 1)


_OF_REQUEST = _events(_E.request_id == bindparam("request_id", type_=Text))
_OF_RESOURCES = _events(_E.resource_id == any_(bindparam("resource_ids", type_=ARRAY(Text))))
_deliveries = union_all(
    OPEN.where(delivery.c.event_id == any_(_IDS), delivery.c.claim.is_(None)),
    OPEN.where(delivery.c.event_id == any_(_IDS), delivery.c.claim.is_not(None)),
    OVER.where(attempt.c.event_id == any_(_IDS), attempt.c.day >= bindparam("since")),
).subquery("found")
_DELIVERIES = select(_deliveries).order_by(_deliveries.c.id).limit(MOST_DELIVERIES + 1)
_ATTEMPTS = (
    select(
        attempt.c.delivery_id,
        attempt.c.number,
        attempt.c.concluded,
        attempt.c.attempted_at,
        attempt.c.duration_ms,
        attempt.c.response_status,
        attempt.c.error,
    )
    .where(
        attempt.c.day == any_(bindparam("days", type_=ARRAY(Date))),
        attempt.c.delivery_id == any_(_IDS),
    )
    .order_by(attempt.c.attempted_at, attempt.c.delivery_id, attempt.c.number)
    .limit(MOST_ATTEMPTS + 1)
)


@dataclass(frozen=True, slots=True)
class RequestedEvent:
    """`request_id`: of the request that raised it; None for what no request raised, and before it was recorded."""

    position: int
    day: date
    id: UUID
    tenant: str
    customer_id: str | None
    type: str
    resource_id: str
    recorded_at: datetime
    request_id: str | None


@dataclass(frozen=True, slots=True)
class RequestedAttempt:
    """`concluded`: what became of the delivery by it; None when another attempt follows."""

    delivery_id: UUID
    number: int
    concluded: str | None
    attempted_at: datetime
    duration_ms: int
    response_status: int | None
    error: str | None


async def events_of(
    connection: AsyncConnection, request_id: str, resource_ids: Sequence[str]
) -> tuple[list[RequestedEvent], bool]:
    """Each once, in their order, and whether there are more."""
    rows = (await connection.execute(_OF_REQUEST, {"request_id": request_id})).all()
    if resource_ids:
        values = {"resource_ids": list(resource_ids)}
        rows = [*rows, *(await connection.execute(_OF_RESOURCES, values)).all()]
    found = {row.id: RequestedEvent(*row) for row in rows}
    ordered = sorted(found.values(), key=lambda one: one.position)
    return ordered[:MOST_EVENTS], len(ordered) > MOST_EVENTS


async def deliveries_of(
    connection: AsyncConnection, events: Collection[RequestedEvent]
) -> tuple[list[DeliveryRecord], bool]:
    """To all subscriptions, the oldest first, and whether there are more."""
    since = min(one.day for one in events) - timedelta(days=1)
    rows = await connection.execute(
        _DELIVERIES, {"ids": [one.id for one in events], "since": since}
    )
    found = [record_of(row) for row in rows]
    return found[:MOST_DELIVERIES], len(found) > MOST_DELIVERIES


async def attempts_of(
    connection: AsyncConnection, deliveries: Collection[DeliveryRecord]
) -> tuple[list[RequestedAttempt], bool]:
    """The oldest first, and whether there are more."""
    first = min(one.created_at for one in deliveries).astimezone(UTC).date()
    rows = (
        await connection.execute(
            _ATTEMPTS,
            {"ids": [one.id for one in deliveries], "days": days_since(first)},
        )
    ).all()
    return [RequestedAttempt(*row) for row in rows[:MOST_ATTEMPTS]], len(rows) > MOST_ATTEMPTS
