"""Deliveries of one subscription: those that are not over, and, by the attempt that ended them, those that are.

Callers have made sure whose the subscription is.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.webhook_views import DeliveryStatus
from services.webhook_dispatcher.models import AttemptRecord, DeliveryRecord

_OPEN = """
    SELECT d.id, d.event_day, d.event_id, d.event_type, d.state AS status, d.attempts_made,
        CASE WHEN d.state = 'pending' THEN greatest(d.due_at, e.open_until) END AS next_attempt_at, d.created_at
    FROM delivery d LEFT JOIN endpoint e ON e.subscription_id = d.subscription_id
    WHERE d.subscription_id = :subscription_id
"""
_OVER = """
    SELECT a.delivery_id AS id, a.event_day, a.event_id, a.event_type, a.concluded AS status,
        a.number AS attempts_made, CAST(NULL AS timestamptz) AS next_attempt_at, a.delivery_created_at AS created_at
    FROM attempt a
    WHERE a.subscription_id = :subscription_id AND a.concluded IS NOT NULL
"""
_FIND = text(f"{_OPEN} AND d.id = :id UNION ALL {_OVER} AND a.delivery_id = :id")
RELEASED = "state = 'pending', held_at = NULL, due_at = clock_timestamp()"
"""What is set of a held delivery that is to be sent now."""
_ADD = text(
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
_STATES_LEFT = {
    "disabled": "d.state = 'pending'",
    "active": "d.state = 'held'",
    "deleted": "true",
}


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
    """The newest first, and how many there are in all. Read in one snapshot: a delivery that ends meanwhile is seen
    once.
    """
    values = {
        "subscription_id": subscription_id,
        "limit": limit,
        "offset": offset,
        "reach": limit + offset,
    }
    parts: list[tuple[str, str]] = []
    if status in (None, DeliveryStatus.PENDING, DeliveryStatus.HELD):
        which = f" AND d.state = '{status}'" if status else ""
        parts.append((_OPEN + which, "d.id"))
    if status in (None, DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED):
        which = f" AND a.concluded = '{status}'" if status else ""
        parts.append((_OVER + which, "a.delivery_id"))
    everything = " UNION ALL ".join(part for part, _ in parts)
    counted = await connection.execute(
        text(f"SELECT count(*) FROM ({everything}) AS found"),  # noqa: S608 - constants
        {"subscription_id": subscription_id},
    )
    total = int(counted.scalar_one())
    if offset >= total:
        return [], total  # a page far beyond the end would read all that is before it
    union = " UNION ALL ".join(f"({part} ORDER BY {key} DESC LIMIT :reach)" for part, key in parts)
    rows = await connection.execute(
        text(f"SELECT * FROM ({union}) AS found ORDER BY id DESC LIMIT :limit OFFSET :offset"),  # noqa: S608 - constants
        values,
    )
    return [_record(row) for row in rows], total


async def attempts(connection: AsyncConnection, delivery: DeliveryRecord) -> list[AttemptRecord]:
    """In their order, all that are kept."""
    first, last = delivery.created_at.astimezone(UTC).date(), datetime.now(UTC).date()
    # By days, of which each is a partition: the index of each begins with it.
    days = [first + timedelta(days=n) for n in range(-1, (last - first).days + 2)]
    rows = await connection.execute(
        text(
            "SELECT attempted_at, duration_ms, response_status, error, response_body FROM attempt"
            " WHERE day = ANY(:days) AND delivery_id = :id ORDER BY number"
        ),
        {"days": days, "id": delivery.id},
    )
    return [AttemptRecord(*row) for row in rows]


async def add_again(
    connection: AsyncConnection,
    subscription_id: UUID,
    deliveries: list[tuple[UUID, date, UUID]],
) -> int:
    """New deliveries, due now, of events that the subscription had before: each with the day and id of its event.

    How many there are: an event that is kept no longer has none.
    """
    added = await connection.execute(
        _ADD,
        {
            "subscription_id": subscription_id,
            "ids": [delivery_id for delivery_id, _, _ in deliveries],
            "days": [day for _, day, _ in deliveries],
            "event_ids": [event_id for _, _, event_id in deliveries],
        },
    )
    return int(added.scalar_one())


async def note(connection: AsyncConnection, subscription_id: UUID, known: DeliveryRecord) -> None:
    """Note a delivery whose event gets another one, so that what becomes of either is found by the event."""
    await connection.execute(
        text(
            "INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)"
            " VALUES (:subscription_id, :event_id, :id, clock_timestamp()) ON CONFLICT DO NOTHING"
        ),
        {"subscription_id": subscription_id, "event_id": known.event_id, "id": known.id},
    )


async def keeps_status(connection: AsyncConnection, subscription_id: UUID, status: str) -> bool:
    """Whether the subscription has the status; if so, it keeps it until the transaction ends."""
    found = await connection.execute(
        text("SELECT 1 FROM subscription WHERE id = :id AND status = :status FOR SHARE"),
        {"id": subscription_id, "status": status},
    )
    return found.first() is not None


async def are_left(connection: AsyncConnection, subscription_id: UUID, status: str) -> bool:
    """Whether there are deliveries that a subscription of this status should not have so."""
    found = await connection.execute(
        text(
            "SELECT 1 FROM delivery d WHERE d.subscription_id = :id"  # noqa: S608 - constants
            f" AND {_STATES_LEFT[status]} LIMIT 1"
        ),
        {"id": subscription_id},
    )
    return found.first() is not None


async def hold(connection: AsyncConnection, subscription_id: UUID, limit: int) -> int:
    """Hold up to so many that are pending; how many."""
    return await _change(
        connection,
        "UPDATE delivery SET state = 'held', held_at = clock_timestamp()",
        "disabled",
        subscription_id,
        limit,
    )


async def release(connection: AsyncConnection, subscription_id: UUID, limit: int) -> int:
    """Make up to so many that are held pending and due; how many."""
    return await _change(
        connection,
        f"UPDATE delivery SET {RELEASED}",  # noqa: S608 - constants
        "active",
        subscription_id,
        limit,
    )


async def drop(connection: AsyncConnection, subscription_id: UUID, limit: int) -> int:
    """Remove up to so many; how many."""
    return await _change(connection, "DELETE FROM delivery", "deleted", subscription_id, limit)


async def _change(
    connection: AsyncConnection, change: str, status: str, subscription_id: UUID, limit: int
) -> int:
    # Whoever finishes deliveries locks several at once, in the order of their ids. These come in another, so that they
    # are found at once: never wait.
    changed = await connection.execute(
        text(
            f"{change} WHERE id IN (SELECT d.id FROM delivery d"  # noqa: S608 - constants
            f" WHERE d.subscription_id = :id AND {_STATES_LEFT[status]} LIMIT :limit"
            " FOR UPDATE SKIP LOCKED)"
        ),
        {"id": subscription_id, "limit": limit},
    )
    return changed.rowcount


def _record(row: Row[Any]) -> DeliveryRecord:
    values = row._asdict()
    return DeliveryRecord(**{**values, "status": DeliveryStatus(values["status"])})
