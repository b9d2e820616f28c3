"""`POST /customer/wire`: a wire, sent exactly once.

    intent ──commit──▶ write once ──▶ accepted | refused ──commit──▶ the caller's answer
       │                 ├──▶ certainly not sent ──commit──▶ again later; until then it can be canceled
       │                 └──▶ unknown ──▶ again later: ask the bank, which may not know it: then send under the same key
       ├ the wire, its history, its event and the beginning of its send are committed before the first call
       └ a wire that needs approval is committed instead, and nothing is sent (`approving`)

A drive that was interrupted at any point is repeated from the start and goes on from what is committed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from libs.contracts.errors import (
    Conflict,
    InvalidState,
    LimitExceeded,
    NotFound,
    OutcomePending,
)
from libs.contracts.result import Result
from libs.contracts.wires import SendWire, WireState
from libs.handling.commands import Drive
from libs.runtime.crash import crash_point
from services.payments.business_days import after_business_days
from services.payments.customer_turns import CustomerTurns
from services.payments.effective_policies import EffectivePolicies
from services.payments.handlers.sending import Sending, begun_of
from services.payments.models import Begun, Payee, Step, WireRecord
from services.payments.ports import OWNERSHIP_SECONDS, Ownership
from services.payments.repository import policies, send_marks, send_writes, wires
from services.payments.views import wire_result

WAITING_MESSAGE = "Wire waiting for approval"


class SendWireHandler:
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

    async def __call__(self, drive: Drive, command: SendWire) -> Result:
        begun = await self._resume(drive) if drive.attempt > 1 else None
        if begun is None:
            try:
                payee = await self._check_ownership(drive, command)
                begun = await self._intend(drive, command, payee)
            except (NotFound, Conflict):
                if await self._may_lack_the_send(drive):
                    # A final refusal would be stored under the Idempotency-Key, although core banking may have
                    # the wire.
                    raise OutcomePending from None
                raise
        if begun.wire.approval_expires_at is not None:
            # Also when it was approved meanwhile: the command that approved it sends it.
            return Result(data=wire_result(begun.wire), message=WAITING_MESSAGE)
        return await self._sending.finish(drive, begun)

    async def _check_ownership(self, drive: Drive, command: SendWire) -> Payee:
        principal = drive.principal
        deadline = time.time() + OWNERSHIP_SECONDS
        if principal.customer_id is None:
            raise NotFound
        try:
            await self._ownership.require_account(principal, command.sending_account_id, deadline)
        except NotFound as error:
            raise NotFound("There is no such account: `sending_account_id`.") from error
        await self._require_open_customer(drive, principal.customer_id, deadline)
        return await self._ownership.require_external_account(
            principal, command.external_account_id, deadline
        )

    async def _require_open_customer(self, drive: Drive, customer_id: str, deadline: float) -> None:
        """Refuse the wire of a denied or canceled customer, unless this database went back and the bank has the wire:
        recording it then moves no money.

        Raises:
            InvalidState: it is refused.
        """
        try:
            await self._ownership.require_open_customer(drive.principal, customer_id, deadline)
        except InvalidState:
            if not await self._was_sent_in_lost_history(drive, deadline):
                raise

    async def _may_lack_the_send(self, drive: Drive) -> bool:
        """Whether this database may lack a send of the wire, also after the case that lists it was closed."""
        async with drive.transaction() as connection:
            return (await send_marks.lost_sends(connection, drive.command_id)).are_possible

    async def _was_sent_in_lost_history(self, drive: Drive, deadline: float) -> bool:
        """Whether this database lost the send and the bank has the wire: recording it then moves no money."""
        return await self._may_lack_the_send(drive) and await self._sending.is_at_bank(
            drive.command_id, deadline
        )

    async def _intend(self, drive: Drive, command: SendWire, payee: Payee) -> Begun:
        """The wire, recorded.

        Raises:
            LimitExceeded: a limit is exceeded, unless this database lost the wire and core banking has it.
            OutcomePending: a limit is exceeded, and core banking gives no usable answer about the wire; or it has the
                wire, which is recorded now, and the next drive asks it again.
        """
        now = datetime.now(UTC)
        wire = WireRecord(
            transaction_id=drive.command_id,
            tenant=drive.principal.tenant,
            customer_id=drive.principal.customer_id or "",
            sending_account_id=command.sending_account_id,
            external_account_id=command.external_account_id,
            amount=command.amount,
            purpose=command.purpose,
            send_age_seconds=0.0,
            last_sent_at=None,
            last_send_age_seconds=None,
            canceled_by=None,
            created_at=now,
            creditor=payee.creditor,
            history=(Step(WireState.PENDING_SUBMISSION, now, None, drive.principal.actor),),
        )
        crash_point("payments.intending")
        begun = None if self._effective.bind_everyone else await self._intend_at_once(drive, wire)
        begun = begun or await self._intend_within_limits(drive, wire, payee)
        crash_point("payments.intended")
        return begun

    async def _intend_at_once(self, drive: Drive, wire: WireRecord) -> Begun | None:
        """By group commit; None when the customer has a policy, and nothing was recorded."""
        deadline = self._sending.deadline()
        intended = await drive.commit(send_writes.INTENT, wire)
        if intended.has_policy:
            return None
        return begun_of(wire, None, intended.lost, deadline)

    async def _intend_within_limits(self, drive: Drive, wire: WireRecord, payee: Payee) -> Begun:
        try:
            return await self._intend_by_policy(drive, wire, payee)
        except LimitExceeded:
            if not await self._was_sent_in_lost_history(drive, time.time() + OWNERSHIP_SECONDS):
                raise
        begun = await self._intend_by_policy(drive, wire, payee, is_at_bank=True)
        if begun.earlier is None:
            # It was found out meanwhile that nothing is lost. The next drive knows of a send, and asks the bank first.
            raise OutcomePending
        return begun

    async def _intend_by_policy(
        self, drive: Drive, wire: WireRecord, payee: Payee, *, is_at_bank: bool = False
    ) -> Begun:
        """One wire of a customer at a time, so that limits hold however many arrive at once.

        Args:
            is_at_bank: core banking already has the wire. It is recorded without checking limits or approval.

        Raises:
            LimitExceeded: a limit is exceeded.
        """
        async with self._turns.take(wire.tenant, wire.customer_id):
            deadline = self._sending.deadline()
            async with drive.transaction() as connection:
                await policies.lock_limits(connection, wire.tenant, wire.customer_id)
                if not is_at_bank:
                    policy = await self._effective.require_within_limits(
                        connection, wire, wire.created_at
                    )
                    if policy.needs_approval(wire.amount, payee.linked_at, wire.created_at):
                        wire = self._waiting(wire)
                await wires.insert_new(connection, wire)
                lost = await send_marks.lost_history(connection, wire)
                begun = begun_of(wire, None, lost, deadline)
                if begun.is_held_back:
                    await send_marks.withdraw_send(connection, wire.transaction_id)
                elif begun.found_means_lost:
                    await send_marks.mark_lost_sends(connection, wire.transaction_id)
        return begun

    def _waiting(self, wire: WireRecord) -> WireRecord:
        first = replace(wire.history[0], state=WireState.PENDING_APPROVAL)
        expires = after_business_days(wire.created_at, self._effective.approval_business_days)
        return replace(wire, history=(first,), send_age_seconds=None, approval_expires_at=expires)

    async def _resume(self, drive: Drive) -> Begun | None:
        """The wire of an earlier drive; None when there is none."""
        deadline = self._sending.deadline()
        async with drive.transaction() as connection:
            wire = await wires.find(connection, drive.principal, drive.command_id, for_change=True)
            if wire is None:
                return None
            if wire.approval_expires_at is not None:
                return Begun(wire, None, deadline)
            begun = await self._sending.begin(connection, wire, deadline)
        crash_point("payments.resumed")
        return begun
