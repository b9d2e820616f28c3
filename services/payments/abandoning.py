"""When a parked command of payments must not be abandoned."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.payments_operations import APPROVE_WIRE, SEND_WIRE
from libs.persistence.async_engine import AsyncConnection
from services.payments.repository import wires


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.handling.operating.open_commands`: a pending wire would stay so, since no command would find it out."""
    if operation not in (SEND_WIRE.name, APPROVE_WIRE.name):
        return None
    wire = await wires.lock_sent_by(connection, command_id)
    if wire is None or not wire.is_pending:
        return None
    if wire.is_unknown:
        return (
            "It is not known whether the bank has the wire: find out, and say so with"
            f" `bankside wires resolve {wire.transaction_id} --as submitted|rejected --reason TEXT`."
        )
    return "Its wire is pending and was not sent: retry it, or have its customer cancel the wire."
