"""How callback URLs have been doing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

_COLUMNS = "unreachable_in_a_row, open_until, probe_seconds, is_slow, last_success_at, failing_since, failed_events"
_READ = f"""
    SELECT e.subscription_id, s.generation, {_COLUMNS}
    FROM endpoint e JOIN subscription s ON s.id = e.subscription_id WHERE e.subscription_id = ANY($1)
    """  # noqa: S608 - constants
_SAVE = f"""
    UPDATE endpoint e SET ({_COLUMNS}) = (v.unreachable_in_a_row, v.open_until, v.probe_seconds, v.is_slow,
        v.last_success_at, v.failing_since, v.failed_events)
    FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::double precision[], $5::boolean[],
        $6::timestamptz[], $7::timestamptz[], $8::integer[]) AS v (subscription_id, {_COLUMNS})
    WHERE e.subscription_id = v.subscription_id
    """  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Health:
    """How an endpoint has been doing. See `engine/health.py` for what moves it.

    Args:
        generation: which endpoint of its subscription it is: news of an earlier one are not its own.
        unreachable_in_a_row: attempts that had no answer, since the last that had one.
        open_until: the circuit breaker is open until then, and half-open afterwards; None: closed.
        probe_seconds: how long the circuit breaker was open the last time.
        failing_since: when the first event since the last success had failed for good.
        failed_events: how many have since.
    """

    generation: int = 0
    unreachable_in_a_row: int = 0
    open_until: datetime | None = None
    probe_seconds: float | None = None
    is_slow: bool = False
    last_success_at: datetime | None = None
    failing_since: datetime | None = None
    failed_events: int = 0


async def read(connection: asyncpg.Connection, ids: Collection[UUID]) -> dict[UUID, Health]:
    return _by_id(await connection.fetch(_READ, list(ids)))


async def lock(connection: asyncpg.Connection, ids: Collection[UUID]) -> dict[UUID, Health]:
    """As `read`, locked until the transaction ends, in one order for all. One that is being reset is left out."""
    statement = f"{_READ} ORDER BY e.subscription_id FOR UPDATE OF e"
    return _by_id(await connection.fetch(statement, list(ids)))


async def save(connection: asyncpg.Connection, healths: Mapping[UUID, Health]) -> None:
    # All but the first, the generation, which is the subscription's.
    columns = zip(*(astuple(health)[1:] for health in healths.values()), strict=True)
    await connection.execute(_SAVE, list(healths), *(list(column) for column in columns))


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[UUID, Health]:
    return {subscription_id: Health(*health) for subscription_id, *health in rows}
