"""The steps of the sagas of some commands, and the customers they are about, of any tenant: for operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.step_cases import IS_UNKNOWN
from services.onboarding.tables import customers, saga_steps

MOST_STEPS = 200

_T = saga_steps.c
_IDS = bindparam("ids", type_=ARRAY(UUID_TYPE))
_STEPS = (
    select(
        _T.saga_id,
        _T.name,
        _T.tenant,
        _T.customer_id,
        _T.idempotency_key,
        _T.compensation,
        _T.state,
        IS_UNKNOWN.label("is_unknown"),
        _T.refusal_reason,
        _T.refusal_code,
        _T.intended_at,
        _T.first_sent_at,
        _T.recorded_at,
        _T.resolution,
        _T.resolved_by,
        _T.resolution_reason,
        _T.command_id,
    )
    .where(_T.saga_id == any_(_IDS))
    .order_by(_T.intended_at, _T.saga_id, _T.name)
    .limit(MOST_STEPS + 1)
)
_CUSTOMERS = select(
    customers.c.customer_id,
    customers.c.tenant,
    customers.c.saga_id,
    customers.c.status,
    customers.c.updated_at,
).where(customers.c.customer_id == any_(_IDS))


@dataclass(frozen=True, slots=True)
class RequestedStep:
    """A write at a provider, as the table has it."""

    saga_id: UUID
    name: str
    tenant: str
    customer_id: UUID
    idempotency_key: UUID
    compensation: bool
    state: str
    is_unknown: bool
    refusal_reason: str | None
    refusal_code: str | None
    intended_at: datetime
    first_sent_at: datetime | None
    recorded_at: datetime | None
    resolution: str | None
    resolved_by: str | None
    resolution_reason: str | None
    command_id: UUID | None


@dataclass(frozen=True, slots=True)
class RequestedCustomer:
    """A customer as it is now. `saga_id`: of the command that made it."""

    customer_id: UUID
    tenant: str
    saga_id: UUID
    status: str
    updated_at: datetime


async def steps_of(
    connection: AsyncConnection, saga_ids: Collection[UUID]
) -> tuple[list[RequestedStep], bool]:
    """The oldest first, and whether there are more."""
    rows = (await connection.execute(_STEPS, {"ids": list(saga_ids)})).all()
    return [RequestedStep(*row) for row in rows[:MOST_STEPS]], len(rows) > MOST_STEPS


async def customers_of(
    connection: AsyncConnection, customer_ids: Collection[UUID]
) -> list[RequestedCustomer]:
    rows = await connection.execute(_CUSTOMERS, {"ids": list(customer_ids)})
    return [RequestedCustomer(*row) for row in rows]
