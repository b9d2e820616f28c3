"""Commands that were accepted and are not final, for an operator to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import any_, bindparam, exists, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import CustomerStatus
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.tables import customers, inbox

_IS_OPEN = inbox.c.finished_at.is_(None)
_IS_THE_COMMAND = inbox.c.command_id == bindparam("id")
_OLDEST = (
    select(
        inbox.c.command_id,
        inbox.c.operation,
        inbox.c.ordering_key,
        inbox.c.accepted_at,
        inbox.c.attempts,
        inbox.c.last_error,
        inbox.c.due_at,
    )
    .where(_IS_OPEN)
    .order_by(inbox.c.accepted_at)
    .limit(bindparam("limit"))
)
_HASTEN = (
    update(inbox)
    .where(_IS_THE_COMMAND, _IS_OPEN, inbox.c.parked_at.is_(None))
    .values(due_at=func.clock_timestamp())
)
_LOCK = (
    select(func.coalesce(inbox.c.lease_until > func.clock_timestamp(), False))
    .where(_IS_THE_COMMAND, _IS_OPEN)
    .with_for_update()
)
_MESSAGE = select(inbox.c.message_id).where(_IS_THE_COMMAND)
_IS_PENDING = select(
    exists().where(
        customers.c.saga_id == any_(bindparam("sagas", type_=ARRAY(UUID_TYPE))),
        customers.c.status == CustomerStatus.PENDING.value,
    )
)


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """`ordering_key` is tenant/customer; an onboarding has none. `last_error` is the code of its last drive."""

    command_id: UUID
    operation: str
    ordering_key: str | None
    accepted_at: datetime
    attempts: int
    last_error: str | None
    next_attempt_at: datetime


async def oldest(connection: AsyncConnection, limit: int) -> list[OpenCommand]:
    rows = await connection.execute(_OLDEST, {"limit": limit})
    return [OpenCommand(*row) for row in rows]


async def hasten(connection: AsyncConnection, command_id: UUID) -> None:
    """Have an open command driven now rather than at the end of its pause."""
    await connection.execute(_HASTEN, {"id": command_id})


async def lock(connection: AsyncConnection, command_id: UUID) -> bool | None:
    """Whether a process drives the command now; None when it is not open. No process begins to until the commit."""
    rows = await connection.execute(_LOCK, {"id": command_id})
    is_driven: bool | None = rows.scalar_one_or_none()
    return is_driven


async def has_pending_customer(connection: AsyncConnection, command_id: UUID) -> bool:
    """Whether a customer that the command was about to make waits for it."""
    row = (await connection.execute(_MESSAGE, {"id": command_id})).first()
    if row is None:
        return False
    sagas = list(saga_ids_of(command_id, row.message_id))
    return bool((await connection.execute(_IS_PENDING, {"sagas": sagas})).scalar_one())
