"""What becomes of a subscription whose endpoint is dead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher.models import SubscriptionRecord

_MAKE_UNAVAILABLE = text(
    """
    UPDATE subscription SET status = 'unavailable', sequence = sequence + 1,
        updated_at = greatest(updated_at, CAST(:now AS timestamptz))
    WHERE id = :id AND status = 'active' AND generation = :generation
    RETURNING id, tenant, customer_id, event_type, callback_url, description, status, secret, previous_secret,
        previous_secret_expires_at, sequence, created_at, updated_at
    """
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rule of the dead endpoint asks for, besides its health.

    Args:
        known_since: when the subscription was created, or its endpoint was reset.
        overdue: pending deliveries that were due before a moment asked for, counted up to a number asked for.
    """

    known_since: datetime
    overdue: int


async def standing(
    connection: AsyncConnection, subscription_id: UUID, *, due_before: datetime, most: int
) -> Standing:
    rows = await connection.execute(
        text(
            "SELECT greatest(s.created_at, e.reset_at),"
            " (SELECT count(*) FROM (SELECT 1 FROM delivery d WHERE d.subscription_id = s.id"
            " AND d.state = 'pending' AND d.claim IS NULL AND d.due_at < :due_before"
            " ORDER BY d.due_at LIMIT :most) AS found)"
            " FROM subscription s LEFT JOIN endpoint e ON e.subscription_id = s.id WHERE s.id = :id"
        ),
        {"id": subscription_id, "due_before": due_before, "most": most},
    )
    return Standing(*rows.one())


async def make_unavailable(
    connection: AsyncConnection, subscription_id: UUID, generation: int, now: datetime
) -> SubscriptionRecord | None:
    """Give up on an active subscription, its row locked: as it is now, its sequence that of the event that says so.

    None when it is not active, or its endpoint is another one by now.
    """
    changed = await connection.execute(
        _MAKE_UNAVAILABLE, {"id": subscription_id, "generation": generation, "now": now}
    )
    row = changed.first()
    if row is None:
        return None
    return SubscriptionRecord(**{**row._asdict(), "status": SubscriptionStatus(row.status)})


async def left_over(connection: AsyncConnection) -> list[tuple[UUID, str]]:
    """Subscriptions, and their status, of which there are deliveries that should be held, or gone: whoever was at it
    has died or given up.

    What is in flight of an unavailable one is not looked for: it is over soon, or found the next time. So all that is
    held need not be walked over: those that are not in flight have an index.
    """
    found = await connection.execute(
        text(
            """
            SELECT s.id, s.status FROM subscription s WHERE s.status = 'unavailable' AND EXISTS (
                SELECT 1 FROM delivery d WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.claim IS NULL
            )
            UNION ALL
            SELECT s.id, s.status FROM subscription s WHERE s.status = 'deleted' AND EXISTS (
                SELECT 1 FROM delivery d WHERE d.subscription_id = s.id
            )
            """
        )
    )
    return [(row.id, row.status) for row in found]
