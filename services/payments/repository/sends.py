"""The commands that send wires, as they stand in the inbox."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.principal import Principal

_principals = msgspec.json.Decoder(Principal)


@dataclass(frozen=True, slots=True)
class OpenSend:
    """A send that is not final.

    Args:
        is_driven: some process is at it now.
        parked_because: why it is not driven any more until an operator decides; None when it is not parked.
    """

    attempts: int
    last_error: str | None
    next_attempt_at: datetime
    is_driven: bool
    parked_because: str | None


async def is_open(connection: AsyncConnection, principal: Principal, transaction_id: UUID) -> bool:
    """Whether a command of this principal is going to send such a wire."""
    found = await connection.execute(
        text(
            "SELECT principal FROM inbox"
            " WHERE command_id = :id AND operation = :operation AND finished_at IS NULL"
        ),
        {"id": transaction_id, "operation": SEND_WIRE.name},
    )
    row = found.first()
    if row is None:
        return False
    owner = _principals.decode(row.principal)
    return (owner.tenant, owner.customer_id) == (principal.tenant, principal.customer_id)


async def hasten(connection: AsyncConnection, transaction_id: UUID) -> None:
    """Have the send driven now rather than at the end of its pause, or of its being parked.

    One that is being forgotten stays so: nothing of it was started, and there is no wire.
    """
    await connection.execute(_HASTEN, {"id": transaction_id})


_HASTEN = text(
    "UPDATE inbox SET due_at = clock_timestamp(), parked_at = NULL, parked_because = NULL, faults = 0"
    " WHERE command_id = :id AND finished_at IS NULL AND NOT forgetting"
)
_OPEN = (
    "SELECT attempts, last_error, due_at, coalesce(lease_until > clock_timestamp(), false), parked_because"
    " FROM inbox WHERE command_id = :id AND finished_at IS NULL"
)


async def find(connection: AsyncConnection, transaction_id: UUID) -> OpenSend | None:
    """The send; None when it is final."""
    found = await connection.execute(text(_OPEN), {"id": transaction_id})
    row = found.first()
    return None if row is None else OpenSend(*row)


async def lock(connection: AsyncConnection, transaction_id: UUID) -> OpenSend | None:
    """As `find`; nobody takes the send up until the transaction ends.

    It is locked before its wire, as by whoever drives it.
    """
    found = await connection.execute(text(f"{_OPEN} FOR UPDATE"), {"id": transaction_id})
    row = found.first()
    return None if row is None else OpenSend(*row)
