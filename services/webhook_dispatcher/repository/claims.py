"""Who is at which delivery. Claims are made by one process at a time, so that limits over all processes hold.

What is due is found by subscription: the index of what is due is entered once for each, and left after as many rows
as may be taken, so that a million due for one that is not to be disturbed cost nothing. But for sweeps, it is entered
where the claim before ended: what was taken stays in the index until PostgreSQL vacuums it, and reading past that took
two thirds of the rate within seconds, with a million due.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from uuid import UUID

import asyncpg

from libs.persistence.engine import Database

FIRST = UUID(int=0)
EVER = datetime.fromtimestamp(0, UTC)
MOST_SUBSCRIPTIONS = 1000
"""Looked at in one claim."""

# Every statement of a claim reads a few rows at the ends of indexes. The planner cannot know that how many are claimed,
# and how many are due, has nothing to do with how many there are, and would read a large table from end to end.
_OPENING = """
    BEGIN;
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        pg_advisory_xact_lock(hashtext(current_schema()), hashtext('claims'))
    """
_WITH_WORK = """
    WITH RECURSIVE with_work AS (
        (SELECT subscription_id FROM delivery
        WHERE state = 'pending' AND claim IS NULL AND subscription_id > $1
        ORDER BY subscription_id LIMIT 1)
        UNION ALL
        SELECT (SELECT d.subscription_id FROM delivery d
            WHERE d.state = 'pending' AND d.claim IS NULL AND d.subscription_id > w.subscription_id
            ORDER BY d.subscription_id LIMIT 1)
        FROM with_work w WHERE w.subscription_id IS NOT NULL
    )
    SELECT subscription_id FROM with_work WHERE subscription_id IS NOT NULL LIMIT $2
    """
# What is in flight is counted once, and looked up as an object: joined as rows, each would be compared with each.
_CANDIDATES = """
    WITH busy AS MATERIALIZED (
        SELECT jsonb_object_agg(subscription_id, count) AS counts FROM (
            SELECT subscription_id, count(*) AS count FROM delivery WHERE claim IS NOT NULL GROUP BY subscription_id
        ) AS counted
    )
    SELECT s.id, s.tenant, s.callback_url, s.secret, s.previous_secret, s.previous_secret_expires_at, s.generation,
        e.open_until IS NOT NULL AS is_probed, coalesce(e.is_slow, false) AS is_slow, under_way.count AS in_flight,
        due.count AS due, due.since AS due_since
    FROM unnest($1::uuid[], $2::timestamptz[]) AS w (id, due_from)
    JOIN subscription s ON s.id = w.id
    LEFT JOIN endpoint e ON e.subscription_id = s.id
    CROSS JOIN LATERAL (
        SELECT coalesce((SELECT (counts ->> s.id::text)::integer FROM busy), 0) AS count
    ) AS under_way
    CROSS JOIN LATERAL (
        SELECT count(*) AS count, min(due_at) AS since FROM (
            SELECT d.due_at FROM delivery d
            WHERE d.subscription_id = s.id AND d.state = 'pending' AND d.claim IS NULL
                AND d.due_at BETWEEN w.due_from AND $3
            ORDER BY d.due_at LIMIT $4
        ) AS found
    ) AS due
    WHERE s.status = 'active' AND (e.open_until IS NULL OR e.open_until <= $3) AND due.count > 0
    """
_TAKE = """
    WITH picked AS (
        SELECT d.id
        FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[]) AS w (subscription_id, due_from, count)
        CROSS JOIN LATERAL (
            SELECT id FROM delivery
            WHERE subscription_id = w.subscription_id AND state = 'pending' AND claim IS NULL
                AND due_at BETWEEN w.due_from AND $4
            ORDER BY due_at LIMIT w.count FOR UPDATE SKIP LOCKED
        ) AS d
    ), taken AS (
        UPDATE delivery d SET claim = $5, lease_until = clock_timestamp() + make_interval(secs => $6)
        WHERE d.id = ANY(ARRAY(SELECT id FROM picked))
        RETURNING d.id, d.subscription_id, d.event_day, d.event_id, d.attempts_made, d.created_at, d.due_at
    )
    SELECT t.*, e.body FROM taken t LEFT JOIN event e ON e.day = t.event_day AND e.id = t.event_id ORDER BY t.due_at
    """
# The moment of a statement, unlike that of the clock, is found in an index.
_FREE_EXPIRED = """
    UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id IN (
        SELECT id FROM delivery WHERE claim IS NOT NULL AND lease_until < statement_timestamp() FOR UPDATE SKIP LOCKED
    ) RETURNING id
    """
_GIVE_BACK = (
    "UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id = ANY($1) AND claim = $2"
)
_DROP = "DELETE FROM delivery WHERE id = ANY($1) AND claim = $2"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subscription that has due deliveries.

    Args:
        secret: sealed, as is `previous_secret`.
        generation: of its endpoint; what comes of an attempt is news of this one only.
        is_probed: its circuit breaker is half-open: one attempt passes.
        in_flight: how many are being worked on, by any process.
        due: how many are due, counted up to a number asked for.
        due_since: since when the first of them is.
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
    in_flight: int
    due: int
    due_since: datetime


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is ours until its lease ends. `body` is None when its event was not found."""

    id: UUID
    subscription_id: UUID
    event_day: date
    event_id: UUID
    attempts_made: int
    created_at: datetime
    due_at: datetime
    body: bytes | None = field(repr=False)


@asynccontextmanager
async def claiming(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A transaction of asyncpg's; until it ends nobody else claims."""
    async with database.driver_transaction(_OPENING) as connection:
        yield connection


async def with_work(connection: asyncpg.Connection, *, after: UUID) -> list[UUID]:
    """Subscriptions with pending deliveries, due or not, in order of their ids; up to `MOST_SUBSCRIPTIONS`."""
    rows = await connection.fetch(_WITH_WORK, after, MOST_SUBSCRIPTIONS)
    return [subscription_id for (subscription_id,) in rows]


async def candidates(
    connection: asyncpg.Connection,
    due_from: Mapping[UUID, datetime],
    now: datetime,
    *,
    most_due: int,
) -> list[Candidate]:
    """Those of the subscriptions to which something may be delivered now.

    Args:
        due_from: what became due before is not looked at.
    """
    rows = await connection.fetch(
        _CANDIDATES, list(due_from), list(due_from.values()), now, most_due
    )
    return [Candidate(*row) for row in rows]


async def take(
    connection: asyncpg.Connection,
    counts: Mapping[UUID, int],
    due_from: Mapping[UUID, datetime],
    claim: UUID,
    *,
    now: datetime,
    lease_seconds: float,
) -> list[Claimed]:
    """Claim so many deliveries of each subscription, those due longest, passing over what is locked.

    As in `candidates`, what became due before `due_from` is not looked at. They come in the order in which they became
    due.

    Leases go by the database's clock, and begin as this is executed: processes need not agree what time it is.
    """
    rows = await connection.fetch(
        _TAKE,
        list(counts),
        [due_from[subscription_id] for subscription_id in counts],
        list(counts.values()),
        now,
        claim,
        lease_seconds,
    )
    return [Claimed(*row) for row in rows]


async def free_expired(connection: asyncpg.Connection) -> int:
    """Give back what was claimed by those who did not finish in time; how many. What they tried is not counted."""
    return len(await connection.fetch(_FREE_EXPIRED))


async def give_back(connection: asyncpg.Connection, ids: Sequence[UUID], claim: UUID) -> None:
    """Release deliveries that were claimed and not sent."""
    await connection.execute(_GIVE_BACK, ids, claim)


async def drop(connection: asyncpg.Connection, ids: Sequence[UUID], claim: UUID) -> None:
    """Remove claimed deliveries."""
    await connection.execute(_DROP, ids, claim)
