"""Approving and declining a wire by a customer's key other than the one that asked for it."""

from __future__ import annotations

from libs.contracts.errors import LimitExceeded, NotFound
from libs.contracts.ids import id_of
from libs.contracts.result import Result
from libs.contracts.wires import ApproveWire, DeclineWire
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import require_nothing_lost
from libs.runtime.crash import crash_point
from services.payments.approving import approve, decline
from services.payments.handlers.sending import Sending
from services.payments.models import Begun, WireRecord
from services.payments.reasons import naming
from services.payments.repository import wires
from services.payments.rules import Rules
from services.payments.views import wire_view


class ApproveWireHandler:
    """The command that approves a wire sends it, as `POST /customer/wire` would, and answers as that does.

    An operator's approval is committed before: its command begins where a repeated drive does.
    """

    def __init__(self, sending: Sending, rules: Rules) -> None:
        self._sending = sending
        self._rules = rules

    async def __call__(self, drive: Drive, command: ApproveWire) -> Result:
        begun = await self._begin(drive, command.transaction_id)
        return await self._sending.finish(drive, begun)

    async def _begin(self, drive: Drive, transaction_id: str) -> Begun:
        principal = drive.principal
        async with self._rules.turn(principal.tenant, principal.customer_id or ""):
            deadline = self._sending.deadline()
            async with drive.transaction() as connection:
                wire = await _locked(connection, drive, transaction_id)
                if wire.approved_by != drive.command_id:
                    wire = await self._approved(drive, connection, wire)
                begun = await self._sending.begin(connection, wire, deadline)
                crash_point("payments.approving")
        crash_point("payments.approved")
        return begun

    async def _approved(
        self, drive: Drive, connection: AsyncConnection, wire: WireRecord
    ) -> WireRecord:
        try:
            with naming(wire.transaction_id):
                return await approve(
                    connection, self._rules, drive.principal, wire, drive.command_id
                )
        except LimitExceeded:
            await require_nothing_lost(connection)
            raise


class DeclineWireHandler:
    async def __call__(self, drive: Drive, command: DeclineWire) -> Result:
        async with drive.transaction() as connection:
            wire = await _locked(connection, drive, command.transaction_id)
            if wire.canceled_by != drive.command_id:
                with naming(wire.transaction_id):
                    wire = await decline(
                        connection, drive.principal, wire, command.reason, drive.command_id
                    )
            crash_point("payments.declining")
        crash_point("payments.declined")
        return Result(data=wire_view(wire))


async def _locked(connection: AsyncConnection, drive: Drive, text: str) -> WireRecord:
    """The wire, its row locked. Raises NotFound."""
    transaction_id = id_of(text)
    if drive.principal.operator is not None:
        wire = (await wires.lock(connection, [transaction_id])).get(transaction_id)
    elif drive.principal.customer_id is not None:
        wire = await wires.find(connection, drive.principal, transaction_id, for_change=True)
    else:
        wire = None
    if wire is None:
        raise NotFound
    return wire
