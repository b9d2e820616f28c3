"""The inbox as far as commands send wires. `libs.persistence.open_commands` finds, locks and makes due one of them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import Interval, bindparam, func, select, update

from libs.contracts.errors import InternalError, OutcomePending
from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.principal import Principal
from libs.handling.running import RETRIES
from libs.handling.stored_commands import principal_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from services.payments.tables import inbox

_OPEN_PRINCIPAL = select(inbox.c.principal).where(
    inbox.c.command_id == bindparam("id"),
    inbox.c.operation == SEND_WIRE.name,
    inbox.c.finished_at.is_(None),
)

MOST_MADE_DUE = 5_000
"""At once. Others are due after their own pause."""
_MAKE_PENDING_DUE = (
    update(inbox)
    .where(
        is_chosen(
            inbox.c.command_id,
            select(inbox.c.command_id)
            .where(
                inbox.c.finished_at.is_(None),
                inbox.c.parked_at.is_(None),
                inbox.c.last_error == OutcomePending.code,
                # One that an operator holds is due later than after any pause.
                inbox.c.due_at.between(
                    func.statement_timestamp(),
                    func.statement_timestamp() + bindparam("longest", type_=Interval),
                ),
            )
            .order_by(inbox.c.command_id)
            .limit(MOST_MADE_DUE)
            .with_for_update(skip_locked=True),
        )
    )
    .values(due_at=func.clock_timestamp())
)
LONGEST_PAUSE = timedelta(seconds=RETRIES.longest_seconds * (1 + RETRIES.jitter))


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


async def make_pending_due(connection: AsyncConnection) -> None:
    """Have all commands driven now whose outcome is pending, but for those that are parked or held by an operator."""
    await connection.execute(_MAKE_PENDING_DUE, {"longest": LONGEST_PAUSE})
