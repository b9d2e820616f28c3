"""Commands that were accepted and are not final, for an operator to look at."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import any_, bindparam, exists, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.customers import CustomerStatus
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.tables import customers, inbox

_IS_OPEN = inbox.c.finished_at.is_(None)
_IS_THE_COMMAND = inbox.c.command_id == bindparam("id")
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
