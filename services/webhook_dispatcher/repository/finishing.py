"""Recording attempts in groups of any size, by one SQL constant over asyncpg.

Each attempt is fenced by its claim: nothing is recorded by a process that has lost it. A delivery that was held and
released since the claim has begun its retry schedule anew: a failure is recorded, and does not end or postpone it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

import asyncpg

# Rows are locked in order of their ids, as in every statement that waits for several deliveries.
_FINISH = """
    WITH locked AS (
        SELECT id, released_at FROM delivery WHERE id = ANY($1) ORDER BY id FOR UPDATE
    ), ending AS (
        SELECT e.id, e.claim, e.day, e.attempted_at, e.duration_ms, e.response_status, e.error, e.response_body,
            e.is_counted, e.due_at, since.is_released,
            CASE WHEN NOT since.is_released OR e.concluded = 'succeeded' THEN e.concluded END AS concluded
        FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::date[], $6::timestamptz[],
            $7::integer[], $8::integer[], $9::text[], $10::text[], $11::boolean[], $12::timestamptz[])
            AS e (id, claim, concluded, due_at, day, attempted_at, duration_ms, response_status, error, response_body,
                is_counted, released_at)
        JOIN locked ON locked.id = e.id
        CROSS JOIN LATERAL (SELECT locked.released_at IS DISTINCT FROM e.released_at AS is_released) AS since
    ), over AS (
        DELETE FROM delivery d USING ending e
        WHERE d.id = ANY($1) AND d.id = e.id AND d.claim = e.claim AND e.concluded IS NOT NULL
        RETURNING d.id, d.subscription_id, d.event_day, d.event_id, d.event_type, d.attempts_made + 1 AS number,
            d.created_at, e.claim
    ), again AS (
        UPDATE delivery d
        SET claim = NULL, lease_until = NULL, attempts_made = d.attempts_made + e.is_counted::integer,
            due_at = CASE WHEN e.is_released THEN d.due_at ELSE e.due_at END,
            schedule_from = d.schedule_from + (e.is_released AND e.is_counted)::integer
        FROM ending e
        WHERE d.id = ANY($1) AND d.id = e.id AND d.claim = e.claim AND e.concluded IS NULL
        RETURNING d.id, d.subscription_id, d.event_day, d.event_id, d.event_type, d.attempts_made AS number,
            d.created_at, e.claim
    ), ended AS (
        SELECT * FROM over UNION ALL SELECT * FROM again
    ), noted AS (
        INSERT INTO attempt (day, delivery_id, number, subscription_id, event_day, event_id, event_type,
            delivery_created_at, concluded, concluded_at, attempted_at, duration_ms, response_status, error,
            response_body)
        SELECT e.day, d.id, d.number, d.subscription_id, d.event_day, d.event_id, d.event_type, d.created_at,
            e.concluded, CASE WHEN e.concluded IS NOT NULL THEN clock_timestamp() END, e.attempted_at, e.duration_ms,
            e.response_status, e.error, e.response_body
        FROM ended d JOIN ending e ON e.id = d.id AND e.claim = d.claim
        WHERE e.is_counted
    )
    SELECT d.id, e.concluded FROM ended d JOIN ending e ON e.id = d.id
    """

Conclusion = Literal["succeeded", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An attempt that ended.

    Args:
        concluded: the final state of the delivery; None when it is due again at `due_at`.
        released_at: of the delivery, when it was claimed.
        is_counted: False: it is no attempt of the schedule, and is not kept; `concluded` is None then.
    """

    delivery_id: UUID
    claim: UUID
    concluded: Conclusion | None
    due_at: datetime | None
    attempted_at: datetime
    duration_ms: int
    response_status: int | None
    error: str | None = field(repr=False)
    response_body: str | None = field(repr=False)
    is_counted: bool = True
    released_at: datetime | None = None


async def finish(
    connection: asyncpg.Connection, endings: Sequence[Ending]
) -> dict[UUID, Conclusion | None]:
    """Record the attempts, each of another delivery. Returns what became of the deliveries that still had the claim,
    None where they are due again; of the others nothing is recorded.

    The partitions of their days exist.
    """
    rows = await connection.fetch(
        _FINISH,
        [ending.delivery_id for ending in endings],
        [ending.claim for ending in endings],
        [ending.concluded for ending in endings],
        [ending.due_at for ending in endings],
        [ending.attempted_at.astimezone(UTC).date() for ending in endings],
        [ending.attempted_at for ending in endings],
        [ending.duration_ms for ending in endings],
        [ending.response_status for ending in endings],
        [ending.error for ending in endings],
        [ending.response_body for ending in endings],
        [ending.is_counted for ending in endings],
        [ending.released_at for ending in endings],
    )
    return dict(rows)
