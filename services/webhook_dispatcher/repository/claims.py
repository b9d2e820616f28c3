"""Who is at which delivery. Claims are made by one process at a time, so that limits over all processes hold.

What is due is found by subscription: the index of what is due is entered once for each, and left after as many rows
as may be taken, so that a million due for one that is not to be disturbed cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

FIRST = UUID(int=0)
MOST_SUBSCRIPTIONS = 1000
"""Looked at in one claim."""

# Every statement of a claim reads a few rows at the ends of indexes. The planner cannot know that how many are claimed,
# and how many are due, has nothing to do with how many there are, and would read a large table from end to end.
_LOCK = text(
    """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        pg_advisory_xact_lock(hashtext(current_schema()), hashtext('claims'))
    """
)
_IN_FLIGHT = text(
    "SELECT subscription_id, count(*) FROM delivery WHERE claim IS NOT NULL GROUP BY subscription_id"
)
_WITH_WORK = text(
    """
    WITH RECURSIVE with_work AS (
        (SELECT subscription_id FROM delivery
        WHERE state = 'pending' AND claim IS NULL AND subscription_id > :after
        ORDER BY subscription_id LIMIT 1)
        UNION ALL
        SELECT (SELECT d.subscription_id FROM delivery d
            WHERE d.state = 'pending' AND d.claim IS NULL AND d.subscription_id > w.subscription_id
            ORDER BY d.subscription_id LIMIT 1)
        FROM with_work w WHERE w.subscription_id IS NOT NULL
    )
    SELECT subscription_id FROM with_work WHERE subscription_id IS NOT NULL LIMIT :limit
    """
)
_CANDIDATES = text(
    """
    SELECT s.id, s.tenant, s.callback_url, s.secret, s.previous_secret, s.previous_secret_expires_at,
        s.generation, e.closed_until IS NOT NULL AS is_probed, coalesce(e.is_slow, false) AS is_slow, due.count AS due
    FROM unnest(CAST(:ids AS uuid[])) AS w (id)
    JOIN subscription s ON s.id = w.id
    LEFT JOIN endpoint e ON e.subscription_id = s.id
    CROSS JOIN LATERAL (
        SELECT count(*) AS count FROM (
            SELECT 1 FROM delivery d
            WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.claim IS NULL
                AND d.due_at <= CAST(:now AS timestamptz)
            ORDER BY d.due_at LIMIT :most
        ) AS found
    ) AS due
    WHERE s.status = 'active' AND (e.closed_until IS NULL OR e.closed_until <= CAST(:now AS timestamptz))
        AND due.count > 0
    """
)
_TAKE = text(
    """
    WITH picked AS (
        SELECT d.id
        FROM unnest(CAST(:subscriptions AS uuid[]), CAST(:counts AS integer[])) AS w (subscription_id, count)
        CROSS JOIN LATERAL (
            SELECT id FROM delivery
            WHERE subscription_id = w.subscription_id AND state = 'pending' AND claim IS NULL
                AND due_at <= CAST(:now AS timestamptz)
            ORDER BY due_at LIMIT w.count FOR UPDATE SKIP LOCKED
        ) AS d
    ), taken AS (
        UPDATE delivery d SET claim = :claim, lease_until = clock_timestamp() + make_interval(secs => :lease_seconds)
        WHERE d.id = ANY(ARRAY(SELECT id FROM picked))
        RETURNING d.id, d.subscription_id, d.event_day, d.event_id, d.attempts_made, d.created_at
    )
    SELECT t.*, e.body FROM taken t LEFT JOIN event e ON e.day = t.event_day AND e.id = t.event_id
    """
)
# The moment of a statement, unlike that of the clock, is found in an index.
_FREE_EXPIRED = text(
    """
    UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id IN (
        SELECT id FROM delivery WHERE claim IS NOT NULL AND lease_until < statement_timestamp() FOR UPDATE SKIP LOCKED
    )
    """
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subscription that has due deliveries.

    Args:
        secret: sealed, as is `previous_secret`.
        generation: of its endpoint; what comes of an attempt is news of this one only.
        is_probed: its breaker let nothing through until now, and lets one through.
        due: how many are due, counted up to what it may have in flight.
    """

    subscription_id: UUID
    tenant: str
    callback_url: str
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)
    previous_secret_expires_at: datetime | None
    generation: int
    is_probed: bool
    is_slow: bool
    due: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is ours until its lease ends. `body` is None when its event was not found."""

    id: UUID
    subscription_id: UUID
    event_day: date
    event_id: UUID
    attempts_made: int
    created_at: datetime
    body: bytes | None = field(repr=False)


async def lock(connection: AsyncConnection) -> None:
    """Until the transaction ends nobody else claims."""
    await connection.execute(_LOCK)


async def in_flight(connection: AsyncConnection) -> dict[UUID, int]:
    """How many deliveries of each subscription are being worked on, by any process."""
    rows = await connection.execute(_IN_FLIGHT)
    return {subscription_id: int(count) for subscription_id, count in rows}


async def with_work(connection: AsyncConnection, *, after: UUID) -> list[UUID]:
    """Subscriptions with pending deliveries, due or not, in order of their ids; up to `MOST_SUBSCRIPTIONS`."""
    rows = await connection.execute(_WITH_WORK, {"after": after, "limit": MOST_SUBSCRIPTIONS})
    return list(rows.scalars())


async def candidates(
    connection: AsyncConnection, ids: Sequence[UUID], now: datetime, *, most_due: int
) -> list[Candidate]:
    """Those of the subscriptions to which something may be delivered now."""
    rows = await connection.execute(_CANDIDATES, {"ids": ids, "now": now, "most": most_due})
    return [Candidate(*row) for row in rows]


async def take(
    connection: AsyncConnection,
    counts: Mapping[UUID, int],
    claim: UUID,
    *,
    now: datetime,
    lease_seconds: float,
) -> list[Claimed]:
    """Claim so many deliveries of each subscription, those due longest, passing over what is locked.

    Leases go by the database's clock, and begin as this is executed: processes need not agree what time it is.
    """
    rows = await connection.execute(
        _TAKE,
        {
            "subscriptions": list(counts),
            "counts": list(counts.values()),
            "claim": claim,
            "now": now,
            "lease_seconds": lease_seconds,
        },
    )
    return [Claimed(*row) for row in rows]


async def free_expired(connection: AsyncConnection) -> int:
    """Give back what was claimed by those who did not finish in time; how many. What they tried is not counted."""
    freed = await connection.execute(_FREE_EXPIRED)
    return freed.rowcount


async def give_back(connection: AsyncConnection, ids: Sequence[UUID], claim: UUID) -> None:
    """What was claimed and not begun."""
    await connection.execute(
        text(
            "UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id = ANY(:ids) AND claim = :claim"
        ),
        {"ids": list(ids), "claim": claim},
    )


async def drop(connection: AsyncConnection, ids: Sequence[UUID], claim: UUID) -> None:
    """Deliveries whose event is kept no longer."""
    await connection.execute(
        text("DELETE FROM delivery WHERE id = ANY(:ids) AND claim = :claim"),
        {"ids": list(ids), "claim": claim},
    )
