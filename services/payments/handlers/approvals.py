"""Approving and declining a wire by a customer's key other than the one that asked for it."""

from __future__ import annotations

import time

from libs.contracts.errors import InvalidState, LimitExceeded, NotFound
from libs.contracts.ids import id_of
from libs.contracts.result import Result
from libs.contracts.wires import ApproveWire, DeclineWire
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import require_nothing_lost
from libs.runtime.crash import crash_point
from services.payments.approving import approve, decline
from services.payments.customer_turns import CustomerTurns
from services.payments.effective_policies import EffectivePolicies
from services.payments.handlers.sending import Sending
from services.payments.models import Begun, WireRecord
from services.payments.ports import OWNERSHIP_SECONDS, Ownership
from services.payments.reasons import naming
from services.payments.repository import wires
from services.payments.views import wire_view


class ApproveWireHandler:
    """The command that approves a wire sends it, as `POST /customer/wire` would, and answers as that does.

    An operator's approval is committed before: its command begins where a repeated drive does.
    """

    def __init__(
        self,
        ownership: Ownership,
        sending: Sending,
        effective: EffectivePolicies,
        turns: CustomerTurns,
    ) -> None:
        self._ownership = ownership
        self._sending = sending
        self._effective = effective
        self._turns = turns

    async def __call__(self, drive: Drive, command: ApproveWire) -> Result:
        await self._require_open_customer(drive, command.transaction_id)
        begun = await self._begin(drive, command.transaction_id)
        return await self._sending.finish(drive, begun)

    async def _begin(self, drive: Drive, transaction_id: str) -> Begun:
        principal = drive.principal
        async with self._turns.take(principal.tenant, principal.customer_id or ""):
            deadline = self._sending.deadline()
            async with drive.transaction() as connection:
                wire = await _locked(connection, drive, transaction_id)
                if wire.approved_by != drive.command_id:
                    wire = await self._approve(drive, connection, wire)
                begun = await self._sending.begin(connection, wire, deadline)
                crash_point("payments.approving")
        crash_point("payments.approved")
        return begun

    async def _require_open_customer(self, drive: Drive, text: str) -> None:
        """Before the wire's row is locked, which must not wait for onboarding. A wire that this command approved in an
        earlier drive goes on, and so does one that an operator approved.

        Raises:
            InvalidState: its customer was denied or canceled.
            NotFound: so it was, and has no such wire.
            OutcomePending: so it was, and this database may lack the wire or an approval of it.
        """
        principal = drive.principal
        customer_id = principal.customer_id
        if customer_id is None or (drive.attempt > 1 and await _is_approved(drive, text)):
            return
        deadline = time.time() + OWNERSHIP_SECONDS
        try:
            await self._ownership.require_open_customer(principal, customer_id, deadline)
        except InvalidState:
            async with drive.transaction() as connection:
                await require_nothing_lost(connection)
                wire = await wires.find(connection, principal, id_of(text))
            if wire is None:
                raise NotFound from None
            with naming(wire.transaction_id):
                raise

    async def _approve(
        self, drive: Drive, connection: AsyncConnection, wire: WireRecord
    ) -> WireRecord:
        try:
            with naming(wire.transaction_id):
                return await approve(
                    connection, self._effective, drive.principal, wire, drive.command_id
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


async def _is_approved(drive: Drive, text: str) -> bool:
    """Whether an earlier drive of this command approved the wire."""
    async with drive.transaction() as connection:
        wire = await wires.find(connection, drive.principal, id_of(text))
    return wire is not None and wire.approved_by == drive.command_id


async def _locked(connection: AsyncConnection, drive: Drive, text: str) -> WireRecord:
    """The wire, its row locked. Raises NotFound; OutcomePending: this database may have lost it."""
    transaction_id = id_of(text)
    if drive.principal.operator is not None:
        wire = (await wires.lock(connection, [transaction_id])).get(transaction_id)
    elif drive.principal.customer_id is not None:
        wire = await wires.find(connection, drive.principal, transaction_id, for_change=True)
    else:
        wire = None
    if wire is None:
        await require_nothing_lost(connection)
        raise NotFound
    return wire
