"""Cancellation of a wire of which no send has begun, or which waits for approval."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from libs.contracts.errors import NotFound, OutcomePending
from libs.contracts.ids import id_of
from libs.contracts.result import Result
from libs.contracts.wires import CancelWire, WireState
from libs.handling.commands import Drive
from libs.persistence import open_commands
from libs.persistence.lost_history import require_nothing_lost
from libs.runtime.crash import crash_point
from services.payments import states
from services.payments.models import WireRecord
from services.payments.reasons import naming
from services.payments.repository import sends, wires
from services.payments.unsent import require_unsent
from services.payments.views import wire_view


class CancelWireHandler:
    async def __call__(self, drive: Drive, command: CancelWire) -> Result:
        if drive.principal.customer_id is None:
            raise NotFound
        transaction_id = id_of(command.transaction_id)
        wire = await self._cancel(drive, transaction_id)
        # The send's command ends when it finds its wire canceled. It is made due in a transaction of its own: a driver
        # locks the command before the wire, and the transaction above has the lock of the wire.
        async with drive.database.transaction() as connection:
            await open_commands.make_due(connection, wire.send_command, unpark=True)
        drive.made_due()
        return Result(data=wire_view(wire))

    async def _cancel(self, drive: Drive, transaction_id: UUID) -> WireRecord:
        async with drive.transaction() as connection:
            # Before the wire is read: a send that ends between the two has left its wire.
            is_open = await sends.is_open(connection, drive.principal, transaction_id)
            wire = await wires.find(connection, drive.principal, transaction_id, for_change=True)
            if wire is None and is_open:
                raise OutcomePending  # accepted; its wire is not recorded yet
            if wire is None:
                await require_nothing_lost(connection)
                raise NotFound
            if wire.canceled_by == drive.command_id:
                return wire
            with naming(transaction_id):
                await require_unsent(connection, wire)
            canceled = replace(
                states.advance(
                    wire, WireState.CANCELED, at=datetime.now(UTC), by=drive.principal.actor
                ),
                canceled_by=drive.command_id,
            )
            saved = await wires.save(connection, canceled)
            assert saved, "its row is locked"
            crash_point("payments.canceling")
        crash_point("payments.canceled")
        return canceled
