"""What a command that is not final has begun of a customer's opening, for an operator who would abandon it."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import any_, bindparam, cast, exists, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.customers import CustomerStatus
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.step_cases import MAY_BE_AT_PROVIDER
from services.onboarding.states import FINAL
from services.onboarding.tables import customers, inbox, saga_steps

_MESSAGE = select(inbox.c.message_id).where(inbox.c.command_id == bindparam("id"))
_IS_PENDING = select(
    exists().where(
        customers.c.saga_id == any_(bindparam("sagas", type_=ARRAY(UUID_TYPE))),
        customers.c.status == CustomerStatus.PENDING.value,
    )
)
# The opening is over when core banking's id is recorded, or when the customer is denied.
_HAS_BEGUN_OPENING = select(
    exists().where(
        inbox.c.command_id == bindparam("id"),
        customers.c.customer_id == cast(func.split_part(inbox.c.ordering_key, "/", 2), UUID_TYPE),
        customers.c.core_id.is_(None),
        customers.c.status.not_in([status.value for status in (CustomerStatus.PENDING, *FINAL)]),
        saga_steps.c.saga_id == customers.c.saga_id,
        saga_steps.c.command_id == inbox.c.command_id,
        MAY_BE_AT_PROVIDER,
    )
)


async def has_pending_customer(connection: AsyncConnection, command_id: UUID) -> bool:
    """Whether a customer that the command was about to make waits for it."""
    row = (await connection.execute(_MESSAGE, {"id": command_id})).first()
    if row is None:
        return False
    sagas = list(saga_ids_of(command_id, row.message_id))
    return bool((await connection.execute(_IS_PENDING, {"sagas": sagas})).scalar_one())


async def has_begun_opening(connection: AsyncConnection, command_id: UUID) -> bool:
    """Whether it was the last to attempt a step of its customer's opening, which is not over."""
    return bool((await connection.execute(_HAS_BEGUN_OPENING, {"id": command_id})).scalar_one())
