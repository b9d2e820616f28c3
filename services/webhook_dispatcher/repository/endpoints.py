"""The health of callback URLs, read and written with every batch of attempts: SQL constants over asyncpg."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from uuid import UUID

import asyncpg
from sqlalchemy import bindparam, exists, func, select, update

from libs.contracts.webhook_views import BreakerRole, HealthState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.tables import PENDING, delivery, endpoint, subscription

_READ = """
    SELECT e.subscription_id, s.generation, e.unreachable_in_a_row, e.open_until, e.probe_seconds, e.is_slow,
        e.last_success_at, e.failing_since, e.failed_events, e.state_since, e.last_failure_at, e.last_failure_status,
        e.last_failure_error
    FROM endpoint e JOIN subscription s ON s.id = e.subscription_id WHERE e.subscription_id = ANY($1)
    """
_LOCK = """
    SELECT e.subscription_id, s.generation, e.unreachable_in_a_row, e.open_until, e.probe_seconds, e.is_slow,
        e.last_success_at, e.failing_since, e.failed_events, e.state_since, e.last_failure_at, e.last_failure_status,
        e.last_failure_error
    FROM endpoint e JOIN subscription s ON s.id = e.subscription_id WHERE e.subscription_id = ANY($1)
    ORDER BY e.subscription_id FOR UPDATE OF e
    """
_SAVE = """
    UPDATE endpoint e SET unreachable_in_a_row = v.unreachable_in_a_row, open_until = v.open_until,
        probe_seconds = v.probe_seconds, is_slow = v.is_slow, last_success_at = v.last_success_at,
        failing_since = v.failing_since, failed_events = v.failed_events, state_since = v.state_since,
        last_failure_at = v.last_failure_at, last_failure_status = v.last_failure_status,
        last_failure_error = v.last_failure_error
    FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::double precision[], $5::boolean[],
        $6::timestamptz[], $7::timestamptz[], $8::integer[], $9::timestamptz[], $10::timestamptz[], $11::integer[],
        $12::text[])
        AS v (subscription_id, unreachable_in_a_row, open_until, probe_seconds, is_slow, last_success_at,
            failing_since, failed_events, state_since, last_failure_at, last_failure_status, last_failure_error)
    WHERE e.subscription_id = v.subscription_id
    """
# By the primary key, page by page: an index on `failed_events` would be written with each event that fails for good.
_FAILED = """
    WITH page AS (
        SELECT subscription_id, failing_since, failed_events, last_success_at, reset_at FROM endpoint
        WHERE subscription_id > $1 ORDER BY subscription_id LIMIT $2
    )
    SELECT
        ARRAY(SELECT s.id FROM page p JOIN subscription s ON s.id = p.subscription_id
            WHERE p.failed_events >= $3 AND p.failing_since <= $4 AND s.status = 'active'
                AND coalesce(p.last_success_at, greatest(s.created_at, p.reset_at)) <= $5) AS failed,
        (SELECT subscription_id FROM page ORDER BY subscription_id OFFSET $2 - 1) AS looked_until
    """
_OVERDUE = (
    select(delivery.c.id)
    .where(
        delivery.c.subscription_id == bindparam("id"),
        delivery.c.state == PENDING,
        delivery.c.claim.is_(None),
        delivery.c.due_at < bindparam("due_before", type_=INSTANT),
        # One that was put first is due before it was made.
        delivery.c.created_at < bindparam("due_before", type_=INSTANT),
    )
    .order_by(delivery.c.due_at)
    .limit(bindparam("most"))
    .subquery("found")
)
_OVERDUE_DELIVERIES = (
    select(
        func.greatest(subscription.c.created_at, endpoint.c.reset_at),
        select(func.count()).select_from(_OVERDUE).scalar_subquery(),
    )
    .select_from(subscription.outerjoin(endpoint, endpoint.c.subscription_id == subscription.c.id))
    .where(subscription.c.id == bindparam("id"))
)
_LET_ONE_THROUGH = (
    update(endpoint)
    .where(endpoint.c.subscription_id == bindparam("id"), endpoint.c.open_until.is_not(None))
    .values(open_until=func.least(endpoint.c.open_until, func.clock_timestamp()))
    .returning(
        exists()
        .where(delivery.c.subscription_id == bindparam("id"), delivery.c.claim.is_not(None))
        .label("any_in_flight")
    )
)


@dataclass(frozen=True, slots=True)
class Health:
    """What attempts have shown of an endpoint. `engine/health.py` has the rules by which it changes.

    Args:
        generation: counts the endpoints of the subscription; attempts at an earlier one do not change this health.
        unreachable_in_a_row: attempts without an answer, since the last one that was answered.
        open_until: the circuit breaker is open until then, and half-open afterwards; None: closed.
        probe_seconds: how long the circuit breaker was open the last time.
        failing_since: when the first event since the last success failed for good.
        failed_events: how many events have failed for good since.
        state_since: since when it is healthy, slow or its circuit breaker is open; None: not known.
        last_failure_at: of the last attempt that failed, to about a minute; with its status and error.
    """

    generation: int = 0
    unreachable_in_a_row: int = 0
    open_until: datetime | None = None
    probe_seconds: float | None = None
    is_slow: bool = False
    last_success_at: datetime | None = None
    failing_since: datetime | None = None
    failed_events: int = 0
    state_since: datetime | None = None
    last_failure_at: datetime | None = None
    last_failure_status: int | None = None
    last_failure_error: str | None = field(default=None, repr=False)

    @property
    def state(self) -> HealthState:
        """How the endpoint is doing, as long as its subscription is not unavailable."""
        if self.open_until is not None:
            return HealthState.BREAKER_OPEN
        return HealthState.SLOW if self.is_slow else HealthState.HEALTHY


@dataclass(frozen=True, slots=True)
class OverdueDeliveries:
    """What decides, beside the health, whether the subscription becomes unavailable.

    Args:
        known_since: when the subscription was created, or its endpoint was replaced.
        count: pending deliveries that were due before a given moment, counted up to a given number.
    """

    known_since: datetime
    count: int


async def read(connection: asyncpg.Connection, ids: Collection[UUID]) -> dict[UUID, Health]:
    return _by_id(await connection.fetch(_READ, list(ids)))


async def lock(connection: asyncpg.Connection, ids: Collection[UUID]) -> dict[UUID, Health]:
    """As `read`, locked in order of their ids until the transaction ends. An endpoint that is being replaced is left
    out.
    """
    return _by_id(await connection.fetch(_LOCK, list(ids)))


async def failed(
    connection: asyncpg.Connection,
    after: UUID,
    *,
    failed_events: int,
    failing_before: datetime,
    succeeded_before: datetime,
    most: int,
) -> tuple[list[UUID], UUID | None]:
    """Of the next `most` endpoints, by id: the active subscriptions of those that have so many failed events, the first
    one before `failing_before`, and the last success before `succeeded_before`; and the last id, None at the end.
    """
    row = await connection.fetchrow(
        _FAILED, after, most, failed_events, failing_before, succeeded_before
    )
    return row["failed"], row["looked_until"]


async def save(connection: asyncpg.Connection, healths: Mapping[UUID, Health]) -> None:
    # All but the first, the generation, which is the subscription's.
    columns = zip(*(astuple(health)[1:] for health in healths.values()), strict=True)
    await connection.execute(_SAVE, list(healths), *(list(column) for column in columns))


async def let_one_through(connection: AsyncConnection, subscription_id: UUID) -> BreakerRole | None:
    """Have an open circuit breaker let its next probe through now, rather than at the end of its pause.

    None when it is closed. `waits`: an attempt is under way, before whose end there is no other.
    """
    row = (await connection.execute(_LET_ONE_THROUGH, {"id": subscription_id})).first()
    if row is None:
        return None
    return BreakerRole.WAITS if row.any_in_flight else BreakerRole.PROBE


async def overdue_deliveries(
    connection: AsyncConnection, subscription_id: UUID, *, due_before: datetime, most: int
) -> OverdueDeliveries:
    rows = await connection.execute(
        _OVERDUE_DELIVERIES, {"id": subscription_id, "due_before": due_before, "most": most}
    )
    return OverdueDeliveries(*rows.one())


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[UUID, Health]:
    return {subscription_id: Health(*health) for subscription_id, *health in rows}
