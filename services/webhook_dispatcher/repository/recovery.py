"""The statements of a recovery, a batch at a time, while the subscription's row is locked.

Times are by the database's clock. A second delivery of an event has a row in `redelivery`. So a failed event has to
be sent again where no delivery there is pending, or has succeeded since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from sqlalchemy import bindparam, func, select, text

from libs.persistence.async_engine import AsyncConnection
from services.webhook_dispatcher.tables import FAILED, attempt

BEGINNING = UUID(int=0)
COMMIT = timedelta(seconds=30)
"""The longest time from the recorded moment of a failure to its commit. A recovery looks at failures from this much
earlier than `since`, so that a recovery that begins where another ended misses none. Events that the other one found
are on their way.
"""


@dataclass(frozen=True, slots=True)
class ReleasedBatch:
    """`last` is the id of the last held delivery that was looked at, None when there was none."""

    last: UUID | None
    released: int


@dataclass(frozen=True, slots=True)
class Failure:
    delivery_id: UUID
    event_day: date
    event_id: UUID
    failed_at: datetime


_NOW = select(func.clock_timestamp())
_FAILED = (
    select(attempt.c.delivery_id, attempt.c.event_day, attempt.c.event_id, attempt.c.concluded_at)
    .where(
        attempt.c.subscription_id == bindparam("subscription_id"),
        attempt.c.concluded == FAILED,
        attempt.c.delivery_id > bindparam("after"),
        attempt.c.day.between(bindparam("first"), bindparam("last")),
        attempt.c.concluded_at.between(bindparam("since"), bindparam("until")),
    )
    .order_by(attempt.c.delivery_id)
    .limit(bindparam("limit"))
)
# Set-based statements, some with several writes: read as SQL, each is one thought. They leave out an event that is on
# its way by another delivery, or was delivered after it failed or was held (`NOT EXISTS … redelivery`).
#
# `_RELEASE` looks at the held deliveries of the subscription after the last one. Its order is that of both columns, and
# no condition is `subscription_id = …`: so the index `delivery_held` alone has the order. With the order of ids, the
# planner may walk the primary key, over all deliveries that the batches before released.
_RELEASE = text(
    """
    WITH looked_at AS (
        SELECT id, held_at FROM delivery
        WHERE state = 'held' AND (subscription_id, id) > (:subscription_id, :after)
            AND subscription_id <= :subscription_id
        ORDER BY subscription_id, id LIMIT :limit
    ), held AS (
        SELECT id, event_id, held_at FROM delivery
        WHERE id = ANY(ARRAY(SELECT id FROM looked_at WHERE held_at BETWEEN :since AND :until)) AND state = 'held'
            AND event_day >= :first_kept
        ORDER BY id FOR UPDATE
    ), wanted AS (
        SELECT DISTINCT ON (x.event_id) x.id FROM held x
        WHERE NOT EXISTS (
            SELECT 1 FROM redelivery r
            WHERE r.subscription_id = :subscription_id AND r.event_id = x.event_id AND (
                EXISTS (SELECT 1 FROM delivery d WHERE d.id = r.delivery_id AND d.state = 'pending')
                OR EXISTS (
                    SELECT 1 FROM attempt a
                    WHERE a.subscription_id = :subscription_id AND a.delivery_id = r.delivery_id
                        AND a.concluded = 'succeeded' AND a.concluded_at > x.held_at
                )
            )
        )
        ORDER BY x.event_id, x.id
    ), released AS (
        UPDATE delivery d SET state = 'pending', held_at = NULL, due_at = clock_timestamp(),
            released_at = clock_timestamp(), schedule_from = attempts_made
        WHERE d.id IN (SELECT id FROM wanted) RETURNING d.id
    ), dropped AS (
        DELETE FROM delivery d USING held h WHERE d.id = h.id AND h.id NOT IN (SELECT id FROM wanted)
    )
    SELECT (SELECT id FROM looked_at ORDER BY id DESC LIMIT 1) AS last, (SELECT count(*) FROM released) AS released
    """
)
_RELEASE_AGAIN = text(
    """
    WITH held AS (
        SELECT id, event_id FROM delivery
        WHERE state = 'held' AND id IN (
            SELECT delivery_id FROM redelivery
            WHERE subscription_id = :subscription_id AND event_id = ANY(:event_ids)
        )
        ORDER BY id FOR UPDATE
    ), released AS (
        UPDATE delivery d SET state = 'pending', held_at = NULL, due_at = clock_timestamp(),
            released_at = clock_timestamp(), schedule_from = attempts_made
        WHERE d.id IN (SELECT DISTINCT ON (event_id) id FROM held ORDER BY event_id, id) RETURNING d.event_id
    )
    SELECT event_id FROM released
    """
)
_STILL_FAILED = text(
    """
    SELECT x.event_id, min(x.event_day)
    FROM unnest(CAST(:event_ids AS uuid[]), CAST(:days AS date[]), CAST(:moments AS timestamptz[]))
        AS x (event_id, event_day, failed_at)
    WHERE NOT EXISTS (
        SELECT 1 FROM redelivery r
        WHERE r.subscription_id = :subscription_id AND r.event_id = x.event_id AND (
            EXISTS (SELECT 1 FROM delivery d WHERE d.id = r.delivery_id AND d.state = 'pending')
            OR EXISTS (
                SELECT 1 FROM attempt a
                WHERE a.subscription_id = :subscription_id AND a.delivery_id = r.delivery_id
                    AND a.concluded = 'succeeded' AND a.concluded_at > x.failed_at
            )
        )
    )
    GROUP BY x.event_id
    """
)


async def now(connection: AsyncConnection) -> datetime:
    found = await connection.execute(_NOW)
    moment: datetime = found.scalar_one()
    return moment


async def release_held(
    connection: AsyncConnection,
    subscription_id: UUID,
    *,
    since: datetime,
    until: datetime,
    first_kept: date,
    after: UUID,
    limit: int,
) -> ReleasedBatch:
    """Look at the next `limit` held deliveries, and make those that were held between `since` and `until` pending and
    due: one of each event, and none of an event that is on its way or was delivered since. The others of that time are
    dropped. The retry schedule of those that are due begins anew. Those of events from before `first_kept` stay held.

    Held deliveries of other times are looked at in batches, too: an index on the time would have to be written whenever
    deliveries are held.
    """
    released = await connection.execute(
        _RELEASE,
        {
            "subscription_id": subscription_id,
            "since": since,
            "until": until,
            "first_kept": first_kept,
            "after": after,
            "limit": limit,
        },
    )
    last, count = released.one()
    return ReleasedBatch(last, int(count))


async def failures(
    connection: AsyncConnection,
    subscription_id: UUID,
    *,
    since: datetime,
    until: datetime,
    after: UUID,
    limit: int,
) -> list[Failure]:
    """The next deliveries that failed for good between `since` and `until`, or up to `COMMIT` before."""
    since = since - COMMIT
    rows = await connection.execute(
        _FAILED,
        {
            "subscription_id": subscription_id,
            "since": since,
            "until": until,
            # An attempt is of the day on which it began.
            "first": since.astimezone(UTC).date() - timedelta(days=1),
            "last": until.astimezone(UTC).date(),
            "after": after,
            "limit": limit,
        },
    )
    return [Failure(*row) for row in rows]


async def release_redeliveries(
    connection: AsyncConnection, subscription_id: UUID, event_ids: Sequence[UUID]
) -> set[UUID]:
    """Make one held redelivery of each of the events pending and due, and begin its retry schedule anew. Returns the
    events that had one.
    """
    released = await connection.execute(
        _RELEASE_AGAIN,
        {"subscription_id": subscription_id, "event_ids": list(event_ids)},
    )
    return set(released.scalars())


async def still_failed(
    connection: AsyncConnection, subscription_id: UUID, failed: Sequence[Failure]
) -> list[tuple[date, UUID]]:
    """Day and id of each of the events that was not delivered since and is not on its way."""
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
