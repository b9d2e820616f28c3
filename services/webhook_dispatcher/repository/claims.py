"""Claims of due deliveries, each under a lease: SQL constants over asyncpg.

One process claims at a time, so that limits over all processes are kept.

Due deliveries are found by subscription. Of each, the index on due deliveries is read for as many rows as may be taken:
a million due for a subscription whose circuit breaker is open cost nothing. Except in a sweep, reading begins where the
last claim ended: index entries of claimed deliveries stay until PostgreSQL vacuums them, and with a million due,
reading past them cost two thirds of the rate within seconds.
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
LONGEST_LEASE_SECONDS = 300.0
MOST_SUBSCRIPTIONS = 1000
"""Subscriptions that one claim looks at."""

# Other processes wait for the lock: one that stops within a claim keeps it for 3 s (`libs.persistence.idle_locks`).
# Every statement of a claim reads a few rows at the ends of indexes. The planner cannot know this, since it does not
# depend on the number of rows, and would read a large table from end to end.
_OPENING = """
    BEGIN;
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        set_config('idle_in_transaction_session_timeout', '3000', true),
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
# Deliveries in flight are counted once, and looked up in a JSON object: a join would compare each row with each.
_DUE_SUBSCRIPTIONS = """
    WITH busy AS MATERIALIZED (
        SELECT jsonb_object_agg(subscription_id, count) AS counts FROM (
            SELECT subscription_id, count(*) AS count FROM delivery WHERE claim IS NOT NULL GROUP BY subscription_id
        ) AS counted
    )
    SELECT s.id, s.tenant, s.callback_url, s.secret, s.previous_secret, s.previous_secret_expires_at, s.generation,
        e.open_until IS NOT NULL AS is_half_open, coalesce(e.is_slow, false) AS is_slow, under_way.count AS in_flight,
        due.count AS due, due.since AS due_since, e.reset_at
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
        RETURNING d.id, d.subscription_id, d.event_day, d.event_id, d.attempts_made, d.schedule_from,
            d.created_at, d.released_at, d.due_at
    )
    SELECT t.*, e.body, e.type, e.request_id, e.trace_context
    FROM taken t LEFT JOIN event e ON e.day = t.event_day AND e.id = t.event_id ORDER BY t.due_at
    """
# `statement_timestamp()`, unlike `clock_timestamp()`, is stable, so that the index on leases is used. A lease that ends
# later than any process sets it was written before the database's clock was set back: its process may be gone.
_FREE_EXPIRED = """
    UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id = ANY(ARRAY(
        SELECT id FROM delivery WHERE claim IS NOT NULL AND (lease_until < statement_timestamp()
            OR lease_until > statement_timestamp() + make_interval(secs => 2 * $1::double precision))
        FOR UPDATE SKIP LOCKED
    )) RETURNING id
    """
_GIVE_BACK = (
    "UPDATE delivery SET claim = NULL, lease_until = NULL WHERE id = ANY($1) AND claim = $2"
)
_DROP = "DELETE FROM delivery WHERE id = ANY($1) AND claim = $2"


@dataclass(frozen=True, slots=True)
class DueSubscription:
    """A subscription that has due deliveries.

    Args:
        secret: sealed, as is `previous_secret`.
        generation: of its endpoint; an attempt changes the health of this generation only.
        is_half_open: its circuit breaker is half-open, and lets one attempt through.
        in_flight: its deliveries in flight, of all processes.
        due: its due deliveries, counted up to a given number.
        due_since: when the first of them became due.
        reset_at: when its endpoint began anew: as the subscription became active, or got another URL.
    """

    id: UUID
    tenant: str
    callback_url: str
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)
    previous_secret_expires_at: datetime | None
    generation: int
    is_half_open: bool
    is_slow: bool
    in_flight: int
    due: int
    due_since: datetime
    reset_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this process claimed, until its lease ends. `body` and what follows are of its event, and None
    without one. The last two are None also when they are not known.

    Args:
        schedule_from: how many of the attempts were made before the present retry schedule began.
        released_at: when it was last released after it had been held; None when it never was.
    """

    id: UUID
    subscription_id: UUID
    event_day: date
    event_id: UUID
    attempts_made: int
    schedule_from: int
    created_at: datetime
    released_at: datetime | None
    due_at: datetime
    body: bytes | None = field(repr=False)
    event_type: str | None = None
    request_id: str | None = None
    trace: str | None = None


@asynccontextmanager
async def claiming(database: Database) -> AsyncIterator[asyncpg.Connection]:
    """A transaction of asyncpg's, until whose end no other process claims."""
    async with database.driver_transaction(_OPENING) as connection:
        yield connection


async def with_work(connection: asyncpg.Connection, *, after: UUID) -> list[UUID]:
    """Subscriptions with pending deliveries, due or not, in order of their ids; up to `MOST_SUBSCRIPTIONS`."""
    rows = await connection.fetch(_WITH_WORK, after, MOST_SUBSCRIPTIONS)
    return [subscription_id for (subscription_id,) in rows]


async def due_subscriptions(
    connection: asyncpg.Connection,
    due_from: Mapping[UUID, datetime],
    now: datetime,
    *,
    most_due: int,
) -> list[DueSubscription]:
    """Those of the subscriptions to which something may be delivered now.

    Args:
        due_from: the subscriptions, and a moment: deliveries that became due before it are not looked at.
        most_due: up to this number, due deliveries of each are counted.
    """
    rows = await connection.fetch(
        _DUE_SUBSCRIPTIONS, list(due_from), list(due_from.values()), now, most_due
    )
    return [DueSubscription(*row) for row in rows]


async def take(
    connection: asyncpg.Connection,
    counts: Mapping[UUID, int],
    due_from: Mapping[UUID, datetime],
    claim: UUID,
    *,
    now: datetime,
    lease_seconds: float,
) -> list[Claimed]:
    """Claim up to `counts` deliveries of each subscription, those due longest, with SKIP LOCKED. Returns them in the
    order in which they became due.

    Leases go by the database's clock, since clocks of processes differ, and begin with this statement.

    Args:
        due_from: as in `due_subscriptions`.
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
    """Release the claims whose lease has ended, without counting an attempt. Returns how many."""
    return len(await connection.fetch(_FREE_EXPIRED, LONGEST_LEASE_SECONDS))


async def give_back(connection: asyncpg.Connection, ids: Sequence[UUID], claim: UUID) -> None:
    """Release deliveries that were claimed and not sent."""
    await connection.execute(_GIVE_BACK, ids, claim)


async def drop(connection: asyncpg.Connection, ids: Sequence[UUID], claim: UUID) -> None:
    """Remove claimed deliveries."""
    await connection.execute(_DROP, ids, claim)
