"""What a recovery finds and changes, a batch at a time. The subscription's row is locked.

An event that failed for good can only be on its way again, or have arrived since, by a redelivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

BEGINNING = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Batch:
    """`last` is the id of the last delivery that was looked at, None when there was none after the one before."""

    last: UUID | None
    events: int


@dataclass(frozen=True, slots=True)
class Failure:
    delivery_id: UUID
    event_day: date
    event_id: UUID
    failed_at: datetime


_RELEASE = text(
    """
    WITH held AS (
        SELECT id FROM delivery
        WHERE subscription_id = :subscription_id AND state = 'held' AND id > :after
            AND created_at BETWEEN :since AND :until
        ORDER BY id LIMIT :limit FOR UPDATE
    ), released AS (
        UPDATE delivery d SET state = 'pending', due_at = clock_timestamp() FROM held
        WHERE d.id = held.id RETURNING d.id, d.event_id
    )
    SELECT (array_agg(id ORDER BY id DESC))[1] AS last, count(DISTINCT event_id) AS events FROM released
    """
)
_FAILED = text(
    """
    SELECT delivery_id, event_day, event_id, attempted_at FROM attempt
    WHERE subscription_id = :subscription_id AND concluded = 'failed' AND delivery_id > :after
        AND day BETWEEN :first AND :last AND attempted_at BETWEEN :since AND :until
    ORDER BY delivery_id LIMIT :limit
    """
)
_RELEASE_AGAIN = text(
    """
    WITH released AS (
        UPDATE delivery d SET state = 'pending', due_at = clock_timestamp()
        FROM redelivery r
        WHERE r.subscription_id = :subscription_id AND r.event_id = ANY(:event_ids)
            AND d.id = r.delivery_id AND d.state = 'held'
        RETURNING d.event_id
    )
    SELECT count(DISTINCT event_id) FROM released
    """
)
_STILL_FAILED = text(
    """
    SELECT f.event_id, min(f.event_day)
    FROM unnest(CAST(:event_ids AS uuid[]), CAST(:days AS date[]), CAST(:moments AS timestamptz[]))
        AS f (event_id, event_day, failed_at)
    WHERE NOT EXISTS (
        SELECT 1 FROM redelivery r
        WHERE r.subscription_id = :subscription_id AND r.event_id = f.event_id AND (
            EXISTS (SELECT 1 FROM delivery d WHERE d.id = r.delivery_id)
            OR EXISTS (
                SELECT 1 FROM attempt a
                WHERE a.subscription_id = :subscription_id AND a.delivery_id = r.delivery_id
                    AND a.concluded = 'succeeded' AND a.attempted_at > f.failed_at
            )
        )
    )
    GROUP BY f.event_id
    """
)


async def release_held(
    connection: AsyncConnection,
    subscription_id: UUID,
    *,
    since: datetime,
    until: datetime,
    after: UUID,
    limit: int,
) -> Batch:
    """Make the next deliveries that were held in the time pending and due."""
    released = await connection.execute(
        _RELEASE,
        {
            "subscription_id": subscription_id,
            "since": since,
            "until": until,
            "after": after,
            "limit": limit,
        },
    )
    last, events = released.one()
    return Batch(last, int(events))


async def failures(
    connection: AsyncConnection,
    subscription_id: UUID,
    *,
    since: datetime,
    until: datetime,
    after: UUID,
    limit: int,
) -> list[Failure]:
    """The next deliveries that failed for good in the time."""
    rows = await connection.execute(
        _FAILED,
        {
            "subscription_id": subscription_id,
            "since": since,
            "until": until,
            "first": since.astimezone(UTC).date(),
            "last": until.astimezone(UTC).date(),
            "after": after,
            "limit": limit,
        },
    )
    return [Failure(*row) for row in rows]


async def release_redeliveries(
    connection: AsyncConnection, subscription_id: UUID, failed: Sequence[Failure]
) -> int:
    """Make those redeliveries of failed events that are held pending and due; of how many events."""
    released = await connection.execute(
        _RELEASE_AGAIN,
        {
            "subscription_id": subscription_id,
            "event_ids": [failure.event_id for failure in failed],
        },
    )
    return int(released.scalar_one())


async def still_failed(
    connection: AsyncConnection, subscription_id: UUID, failed: Sequence[Failure]
) -> list[tuple[date, UUID]]:
    """Day and id of each of the events, once, that did not succeed since and is not on its way."""
    rows = await connection.execute(
        _STILL_FAILED,
        {
            "subscription_id": subscription_id,
            "event_ids": [failure.event_id for failure in failed],
            "days": [failure.event_day for failure in failed],
            "moments": [failure.failed_at for failure in failed],
        },
    )
    return [(day, event_id) for event_id, day in rows]


async def forget_redeliveries(connection: AsyncConnection, before: datetime, limit: int) -> int:
    """Remove up to so many that are older than anything that can be recovered; how many."""
    removed = await connection.execute(
        text(
            "DELETE FROM redelivery WHERE (subscription_id, event_id, delivery_id) IN"
            " (SELECT subscription_id, event_id, delivery_id FROM redelivery WHERE created_at < :before"
            " LIMIT :limit FOR UPDATE SKIP LOCKED)"
        ),
        {"before": before, "limit": limit},
    )
    return removed.rowcount
