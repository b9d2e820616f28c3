"""Endpoint 15: a wire, sent exactly once.

    intend ──commit──▶ call ──▶ accepted | refused ──commit──▶ the caller's answer
       │                 ├──▶ certainly not sent ──commit──▶ again later; until then it can be canceled
       │                 └──▶ unknown ──▶ again later: ask, and send under the same key if the provider does not know it
       └ nothing is called before the wire, its history, its event and the beginning of its send are committed

A handler that runs again from its start, at any point, goes on from what is committed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from libs.contracts.errors import NotFound, OutcomePending
from libs.contracts.result import Result
from libs.contracts.wires import SendWire, WireState
from libs.providers.errors import ProviderNotReached, ProviderRefusal, ProviderUnknown
from libs.runtime.commands import Drive
from libs.runtime.crash import crash_point
from libs.runtime.driving import RENEWALS
from services.payments import states
from services.payments.handlers.verdict import Verdict, is_decision, told
from services.payments.metrics import SENDS
from services.payments.models import Step, WireRecord
from services.payments.ports import CoreBanking, Ownership
from services.payments.reasons import one_line
from services.payments.repository import steps, wires

SEND_SECONDS = 10.0
"""The longest one drive may take for calls, the question about an earlier send included. Never longer than its lease:
an operator who decides on a wire that nobody drives must not be overtaken by a driver that had stalled.
"""
OWNERSHIP_SECONDS = 10.0
KEY_MARGIN_SECONDS = 60.0
"""A provider's clock, and the way there, may be so much off."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A wire whose send has begun; `resumed`: perhaps by an earlier drive."""

    wire: WireRecord
    resumed: bool


class SendWireHandler:
    """Args:
    key_seconds: how long the provider remembers keys. No send arrives later than that after the first send of a wire:
        then it is only asked about, until somebody decides.
    lease_seconds: how long this process may drive a command without a sign of life.
    """

    def __init__(
        self,
        ownership: Ownership,
        core: CoreBanking,
        *,
        key_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._ownership = ownership
        self._core = core
        # A lease that was renewed last two turns ago is good for so long.
        self._send_seconds = min(SEND_SECONDS, lease_seconds * (1 - 2 / RENEWALS))
        self._resend_seconds = key_seconds - self._send_seconds - KEY_MARGIN_SECONDS
        self._log = structlog.get_logger("wires")

    async def __call__(self, drive: Drive, command: SendWire) -> Result:
        # Before the wire is read: whoever stalls after that has no time left to send what was decided meanwhile.
        deadline = time.time() + self._send_seconds
        begun = await self._resume(drive) if drive.attempt > 1 else None
        if begun is None:
            await self._check_ownership(drive, command)
            deadline = time.time() + self._send_seconds
            begun = await self._intend(drive, command)
        if not begun.wire.is_pending:
            return told(begun.wire)
        verdict = await self._call(drive, begun, deadline)
        return told(await self._record(drive, begun.wire, verdict))

    async def _check_ownership(self, drive: Drive, command: SendWire) -> None:
        principal = drive.principal
        deadline = time.time() + OWNERSHIP_SECONDS
        if principal.customer_id is None:
            raise NotFound
        await self._ownership.require_account(principal, command.sending_account_id, deadline)
        await self._ownership.require_external_account(
            principal, command.external_account_id, deadline
        )

    async def _intend(self, drive: Drive, command: SendWire) -> Begun:
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
            canceled_by=None,
            created_at=now,
            history=(Step(WireState.PENDING_SUBMISSION, now, None),),
        )
        crash_point("payments.intending")
        await drive.commit(steps.INTENDING, wire)
        crash_point("payments.intended")
        return Begun(wire, resumed=False)

    async def _resume(self, drive: Drive) -> Begun | None:
        """What earlier drives left; None when they left nothing."""
        async with drive.transaction() as connection:
            wire = await wires.find(connection, drive.principal, drive.command_id, for_change=True)
            if wire is None:
                return None
            resumed = wire.send_age_seconds is not None
            if wire.is_pending and not resumed:
                await wires.begin_send(connection, wire.transaction_id)
        crash_point("payments.resumed")
        return Begun(wire, resumed=resumed)

    async def _call(self, drive: Drive, begun: Begun, deadline: float) -> Verdict:
        """The provider's word.

        Raises:
            OutcomePending: there is none yet.
        """
        wire = begun.wire
        try:
            verdict = await self._send(begun, deadline)
        except ProviderNotReached as error:
            SENDS.labels("not_reached").inc()
            async with drive.transaction() as connection:
                await wires.withdraw_send(connection, wire.transaction_id)
                crash_point("payments.withdrawing")
            crash_point("payments.withdrawn")
            raise OutcomePending from error
        except ProviderUnknown as error:
            SENDS.labels("unknown").inc()
            raise OutcomePending from error
        crash_point("payments.called")
        SENDS.labels("accepted" if verdict.accepted else "refused").inc()
        return verdict

    async def _send(self, begun: Begun, deadline: float) -> Verdict:
        """Raises ProviderNotReached, ProviderUnknown."""
        wire = begun.wire
        try:
            if begun.resumed and (wire.send_age_seconds or 0) >= self._resend_seconds:
                return await self._only_ask(wire, deadline)
            await self._core.send_wire(wire, deadline, resumed=begun.resumed)
        except ProviderRefusal as refusal:
            refused = self._decided(wire, refusal)
            return await self._confirmed(wire, deadline) if begun.resumed else refused
        return Verdict()

    def _decided(self, wire: WireRecord, refusal: ProviderRefusal) -> Verdict:
        """Raises ProviderUnknown when the provider did not look at the wire."""
        if is_decision(refusal):
            return Verdict(one_line(refusal.code))
        self._log.error(
            "provider_does_not_decide",
            transaction_id=str(wire.transaction_id),
            status=refusal.status,
            code=refusal.code,
        )
        raise ProviderUnknown(str(refusal)) from refusal

    async def _confirmed(self, wire: WireRecord, deadline: float) -> Verdict:
        """What the provider keeps under the key, when one of several sends was refused.

        A refusal that it does not keep says nothing of an earlier send that may still be on its way.
        """
        try:
            if await self._core.has_wire(wire.transaction_id, deadline):
                return Verdict()
        except ProviderRefusal as kept:
            return self._decided(wire, kept)
        self._log.warning("refusal_not_kept", transaction_id=str(wire.transaction_id))
        raise ProviderUnknown("the refusal does not bind earlier sends")

    async def _only_ask(self, wire: WireRecord, deadline: float) -> Verdict:
        """Raises ProviderUnknown when the provider knows nothing: it may have forgotten."""
        if await self._core.has_wire(wire.transaction_id, deadline):
            return Verdict()
        self._log.error("wire_needs_an_operator", transaction_id=str(wire.transaction_id))
        raise ProviderUnknown("too late to send again")

    async def _record(self, drive: Drive, wire: WireRecord, verdict: Verdict) -> WireRecord:
        """The wire as it then is: what the provider's feed or an operator recorded meanwhile stands."""
        version = states.advance(
            wire, verdict.state, at=datetime.now(UTC), reason=verdict.refusal_code
        )
        crash_point("payments.recording")
        standing = await drive.commit(steps.RECORDING, version)
        crash_point("payments.recorded")
        if standing.was_accepted != verdict.accepted:
            self._log.error(
                "provider_contradicts_record",
                transaction_id=str(wire.transaction_id),
                state=standing.state,
                accepted=verdict.accepted,
            )
        return standing
