"""The commands that send wires, in the inbox. To look one up or lock it, see `libs.persistence.open_commands`."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import bindparam, func, not_, null, select, update

from libs.contracts.errors import InternalError
from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.principal import Principal
from libs.handling.stored_commands import principal_of
from libs.persistence.async_engine import AsyncConnection
from services.payments.tables import inbox

_OPEN_PRINCIPAL = select(inbox.c.principal).where(
    inbox.c.command_id == bindparam("id"),
    inbox.c.operation == SEND_WIRE.name,
    inbox.c.finished_at.is_(None),
)
_MAKE_DUE = (
    update(inbox)
    .where(
        inbox.c.command_id == bindparam("id"),
        inbox.c.finished_at.is_(None),
        not_(inbox.c.forgetting),
    )
    .values(due_at=func.clock_timestamp(), parked_at=null(), parked_because=null(), faults=0)
)


async def is_open(connection: AsyncConnection, principal: Principal, transaction_id: UUID) -> bool:
    """Whether a command of this principal is still to send such a wire.

    Raises:
        InternalError: this release cannot read the command's principal.
    """
    row = (await connection.execute(_OPEN_PRINCIPAL, {"id": transaction_id})).first()
    if row is None:
        return False
    owner = principal_of(row.principal)
    if owner is None:
        raise InternalError
    return (owner.tenant, owner.customer_id) == (principal.tenant, principal.customer_id)


async def make_due(connection: AsyncConnection, command_id: UUID) -> None:
    """Have the send driven now, also when it waits for its next attempt or is parked.

    A send that is being forgotten is left alone: nothing of it was started, and there is no wire.
    """
    await connection.execute(_MAKE_DUE, {"id": command_id})
