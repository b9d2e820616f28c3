"""How callback URLs have been doing, and what becomes of a subscription whose endpoint is dead."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.webhook_views import SubscriptionStatus
from services.webhook_dispatcher.models import SubscriptionRecord

_COLUMNS = "unreachable_in_a_row, closed_until, probe_seconds, is_slow, last_success_at, failing_since, failed_events"
_READ = f"""
    SELECT e.subscription_id, s.generation, {_COLUMNS}
    FROM endpoint e JOIN subscription s ON s.id = e.subscription_id WHERE e.subscription_id = ANY(:ids)
"""  # noqa: S608 - constants
_SAVE = text(
    f"""
    UPDATE endpoint e SET ({_COLUMNS}) = (v.unreachable_in_a_row, v.closed_until, v.probe_seconds, v.is_slow,
        v.last_success_at, v.failing_since, v.failed_events)
    FROM unnest(CAST(:ids AS uuid[]), CAST(:unreachable AS integer[]), CAST(:closed AS timestamptz[]),
        CAST(:probes AS double precision[]), CAST(:slow AS boolean[]), CAST(:successes AS timestamptz[]),
        CAST(:failing AS timestamptz[]), CAST(:failed AS integer[])) AS v (subscription_id, {_COLUMNS})
    WHERE e.subscription_id = v.subscription_id
    """  # noqa: S608 - constants
)
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
class Health:
    """How an endpoint has been doing. See `engine/health.py` for what moves it.

    Args:
        generation: which endpoint of its subscription it is: news of an earlier one are not its own.
        unreachable_in_a_row: attempts that had no answer, since the last that had one.
        closed_until: the breaker lets nothing through before then, and one at a time from then on; None: all.
        probe_seconds: how long the breaker was closed the last time.
        failing_since: when the first event since the last success had failed for good.
        failed_events: how many have since.
    """

    generation: int = 0
    unreachable_in_a_row: int = 0
    closed_until: datetime | None = None
    probe_seconds: float | None = None
    is_slow: bool = False
    last_success_at: datetime | None = None
    failing_since: datetime | None = None
    failed_events: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What the rule of the dead endpoint asks for, besides its health.

    Args:
        known_since: when the subscription was created, or its endpoint was reset.
        overdue: pending deliveries that were due before a moment asked for, counted up to a number asked for.
    """

    known_since: datetime
    overdue: int


async def read(connection: AsyncConnection, ids: Collection[UUID]) -> dict[UUID, Health]:
    rows = await connection.execute(text(_READ), {"ids": list(ids)})
    return {subscription_id: Health(*health) for subscription_id, *health in rows}


async def lock(connection: AsyncConnection, ids: Collection[UUID]) -> dict[UUID, Health]:
    """As `read`, locked until the transaction ends, in one order for all. One that is being reset is left out."""
    rows = await connection.execute(
        text(f"{_READ} ORDER BY e.subscription_id FOR UPDATE OF e"), {"ids": list(ids)}
    )
    return {subscription_id: Health(*health) for subscription_id, *health in rows}


async def save(connection: AsyncConnection, healths: Mapping[UUID, Health]) -> None:
    # All but the first, the generation, which is the subscription's.
    columns = zip(*(astuple(health)[1:] for health in healths.values()), strict=True)
    names = ("unreachable", "closed", "probes", "slow", "successes", "failing", "failed")
    values = {name: list(column) for name, column in zip(names, columns, strict=True)}
    await connection.execute(_SAVE, {"ids": list(healths), **values})


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
