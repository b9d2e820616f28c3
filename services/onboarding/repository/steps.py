"""Saga steps: the intent before a provider is called, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import decode, encode

PURGE_BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SagaName:
    """Which saga a step belongs to, and for whom it acts."""

    saga_id: UUID
    tenant: str
    customer_id: UUID
    operation: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step as recorded. `result` is the provider's answer when it is done; the refusal when it is refused."""

    idempotency_key: UUID
    state: Literal["intended", "done", "refused"]
    result: Any
    refusal_status: int | None
    refusal_code: str | None


@dataclass(frozen=True, slots=True)
class RefusedCompensation:
    """Something that could not be taken back: the two providers disagree until an operator has seen to it."""

    saga_id: UUID
    step: str
    tenant: str
    customer_id: UUID
    operation: str
    refusal_status: int
    refusal_code: str
    refused_at: datetime


async def intend(
    connection: AsyncConnection,
    saga: SagaName,
    name: str,
    idempotency_key: UUID,
    *,
    compensation: bool,
) -> tuple[Step, bool]:
    """Record the intent, or find what is recorded; true when the intent is new."""
    inserted = await connection.execute(
        text(
            "INSERT INTO saga_steps"
            " (saga_id, name, tenant, customer_id, operation, idempotency_key, compensation) VALUES"
            " (:saga_id, :name, :tenant, :customer_id, :operation, :key, :compensation)"
            " ON CONFLICT (saga_id, name) DO NOTHING"
        ),
        {
            "saga_id": saga.saga_id,
            "name": name,
            "tenant": saga.tenant,
            "customer_id": saga.customer_id,
            "operation": saga.operation,
            "key": idempotency_key,
            "compensation": compensation,
        },
    )
    rows = await connection.execute(
        text(
            "SELECT idempotency_key, state, result::text, refusal_status, refusal_code"
            " FROM saga_steps WHERE saga_id = :saga_id AND name = :name"
        ),
        {"saga_id": saga.saga_id, "name": name},
    )
    row = rows.one()
    result = None if row.result is None else decode(row.result)
    step = Step(row.idempotency_key, row.state, result, row.refusal_status, row.refusal_code)
    return step, inserted.rowcount == 1


async def withdraw(connection: AsyncConnection, saga: SagaName, name: str) -> None:
    """The intent was certainly not carried out."""
    await connection.execute(
        text(
            "DELETE FROM saga_steps WHERE saga_id = :saga_id AND name = :name AND state = 'intended'"
        ),
        {"saga_id": saga.saga_id, "name": name},
    )


async def set_done(connection: AsyncConnection, saga: SagaName, name: str, result: Any) -> None:
    await connection.execute(
        text(
            "UPDATE saga_steps SET state = 'done', result = CAST(:result AS jsonb),"
            " recorded_at = clock_timestamp() WHERE saga_id = :saga_id AND name = :name"
        ),
        {"saga_id": saga.saga_id, "name": name, "result": encode(result).decode()},
    )


async def set_refused(
    connection: AsyncConnection, saga: SagaName, name: str, status: int, code: str
) -> None:
    await connection.execute(
        text(
            "UPDATE saga_steps SET state = 'refused', refusal_status = :status, refusal_code = :code,"
            " recorded_at = clock_timestamp() WHERE saga_id = :saga_id AND name = :name"
        ),
        {"saga_id": saga.saga_id, "name": name, "status": status, "code": code[:64]},
    )


async def refused_compensations(
    connection: AsyncConnection, limit: int
) -> list[RefusedCompensation]:
    """The newest first."""
    rows = await connection.execute(
        text(
            "SELECT saga_id, name, tenant, customer_id, operation, refusal_status, refusal_code,"
            " recorded_at FROM saga_steps"
            " WHERE compensation AND state = 'refused' AND settled_at IS NULL"
            " ORDER BY recorded_at DESC LIMIT :limit"
        ),
        {"limit": limit},
    )
    return [RefusedCompensation(*row) for row in rows]


async def settle(connection: AsyncConnection, saga_id: UUID, name: str) -> bool:
    """An operator has seen to a refused compensation; false when there is none of that name to see to."""
    settled = await connection.execute(
        text(
            "UPDATE saga_steps SET settled_at = clock_timestamp() WHERE saga_id = :saga_id"
            " AND name = :name AND compensation AND state = 'refused' AND settled_at IS NULL"
        ),
        {"saga_id": saga_id, "name": name},
    )
    return settled.rowcount == 1


async def purge(connection: AsyncConnection, *, days: int) -> int:
    """Delete a batch of steps whose outcome was recorded so many days ago; how many.

    Kept are those of a saga that may still run again, which is one of a customer that is pending or has a command open;
    and refused compensations that nobody has seen to.
    """
    deleted = await connection.execute(
        text(
            """
            DELETE FROM saga_steps WHERE (saga_id, name) IN (
                SELECT s.saga_id, s.name FROM saga_steps s
                WHERE s.recorded_at < clock_timestamp() - make_interval(days => :days)
                    AND (s.settled_at IS NOT NULL OR NOT (s.compensation AND s.state = 'refused'))
                    AND NOT EXISTS (SELECT 1 FROM customers c
                        WHERE c.customer_id = s.customer_id AND c.status = 'pending')
                    AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.finished_at IS NULL
                        AND i.ordering_key = s.tenant || '/' || CAST(s.customer_id AS text))
                ORDER BY s.recorded_at LIMIT :batch FOR UPDATE OF s SKIP LOCKED)
            """
        ),
        {"days": days, "batch": PURGE_BATCH},
    )
    return deleted.rowcount
