"""Sending a wire whose send has begun: the call to the bank, once, and what it said.

When a wire may be sent again, and when its refusal counts, is decided by `libs.providers.writing`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import structlog

from libs.contracts.errors import BanksideError, InvalidState, OutcomePending
from libs.contracts.result import Result
from libs.contracts.wires import WireState
from libs.handling.commands import Drive
from libs.handling.driving import RENEWALS
from libs.persistence import continuity
from libs.persistence.async_engine import AsyncConnection
from libs.providers.outcomes import Accepted, NotSent, Refused, Unknown
from libs.providers.writing import Attempt, Earlier, with_lost_history, write_once
from libs.runtime.crash import crash_point
from services.payments import states
from services.payments.metrics import SENDS
from services.payments.models import Begun, WireRecord
from services.payments.ports import Acceptance, CoreBanking
from services.payments.reasons import error_of, why_refused
from services.payments.repository import send_marks, send_writes, wires
from services.payments.repository.send_marks import LostHistory
from services.payments.views import wire_result

SEND_SECONDS = 10.0
"""The longest time of one drive's calls to the bank, the query about an earlier send included. It ends before the lease
does: an operator may decide on a wire without a lease, and no stalled driver may send it afterwards.
"""

Decision = Accepted[Acceptance] | Refused


class Sending:
    """Sends recorded wires to core banking, and turns its answers into results of their commands.

    Args:
        lease_seconds: the length of a command's lease.
    """

    def __init__(self, core: CoreBanking, *, lease_seconds: float) -> None:
        self._core = core
        # What is left of a lease whose last two renewals failed.
        self._send_seconds = min(SEND_SECONDS, lease_seconds * (1 - 2 / RENEWALS))
        self._log = structlog.get_logger("wires")

    def deadline(self) -> float:
        """Deadline (Unix seconds) for calls that begin now."""
        return time.time() + self._send_seconds

    async def is_at_bank(self, transaction_id: UUID, deadline: float) -> bool:
        """Whether core banking has the wire.

        Raises:
            OutcomePending: core banking gave no usable answer before `deadline`.
        """
        try:
            return await self._core.look_up(transaction_id, deadline) is not None
        except BanksideError as error:
            raise OutcomePending from error

    async def begin(self, connection: AsyncConnection, wire: WireRecord, deadline: float) -> Begun:
        """Begin the send of a recorded wire, or go on with that of an earlier drive. Its row is locked by this
        transaction, before which `deadline` was taken. Of a wire that is held back no send begins.
        """
        lost = await send_marks.lost_history(connection, wire)
        begun = begun_of(wire, wire.earlier_sends, lost, deadline)
        if wire.is_pending and not begun.is_held_back:
            await send_marks.begin_send(connection, wire.transaction_id)
            if begun.found_means_lost:
                # Until the bank has said that it does not know the wire: this process may end before that.
                await send_marks.mark_lost_sends(connection, wire.transaction_id)
        return begun

    async def finish(self, drive: Drive, begun: Begun) -> Result:
        """The answer to the command that sends the wire.

        Raises:
            OutcomePending: it is not known yet.
            Conflict: the wire was canceled, or rejected.
        """
        if not begun.wire.is_pending:
            return verdict_reply(begun.wire)
        decision = await self._call(drive, begun)
        return verdict_reply(await self._record(drive, begun, decision))

    async def _call(self, drive: Drive, begun: Begun) -> Decision:
        """The bank's decision.

        Raises:
            OutcomePending: it is not known yet.
        """
        wire = begun.wire
        attempt = Attempt(
            wire.transaction_id,
            begun.deadline,
            self._send_seconds,
            begun.earlier,
            only_looked_up=begun.is_held_back,
            before_send=partial(self._begin_absent, drive) if begun.found_means_lost else None,
        )
        outcome = await write_once(self._core.send_wire(wire), attempt)
        match outcome:
            case Accepted():
                crash_point("payments.called")
                SENDS.labels("accepted").inc()
                return outcome
            case Refused():
                crash_point("payments.called")
                SENDS.labels("refused").inc()
                return outcome
            case NotSent():
                SENDS.labels("not_reached").inc()
                async with drive.transaction() as connection:
                    await send_marks.withdraw_send(connection, wire.transaction_id)
                    crash_point("payments.withdrawing")
                crash_point("payments.withdrawn")
            case Unknown():
                SENDS.labels("held_back" if begun.is_held_back else "unknown").inc()
                await self._conclude_unknown(drive, begun, outcome)
        raise OutcomePending

    async def _begin_absent(self, drive: Drive, transaction_id: UUID) -> None:
        """Before a wire is sent of which the bank does not have the send that may be lost.

        Raises:
            OutcomePending: the wire has moved on since, as by the feed.
        """
        async with drive.transaction() as connection:
            wire = (await wires.lock(connection, [transaction_id]))[transaction_id]
            if not wire.is_pending:
                raise OutcomePending
            await send_marks.begin_send(connection, transaction_id)

    async def _conclude_unknown(self, drive: Drive, begun: Begun, outcome: Unknown) -> None:
        """After an attempt that sent nothing, the send before it is the last again, from which transit is counted."""
        if outcome.needs_operator:
            self._log.error("wire_needs_an_operator", transaction_id=str(begun.wire.transaction_id))
        if begun.is_held_back:
            self._log.warning("wire_held_back", transaction_id=str(begun.wire.transaction_id))
            return
        if outcome.sent:
            return
        async with drive.transaction() as connection:
            wire = begun.wire
            if wire.last_sent_at is None or wire.has_lost_sends_only:
                await send_marks.mark_lost_sends(connection, wire.transaction_id)
            else:
                await send_marks.restore_last_sent_at(
                    connection, wire.transaction_id, wire.last_sent_at
                )

    async def _record(self, drive: Drive, begun: Begun, decision: Decision) -> WireRecord:
        """The wire as it then is. What the feed or an operator has recorded meanwhile is not overwritten."""
        wire = begun.wire
        now = datetime.now(UTC)
        is_loss = False
        if isinstance(decision, Refused):
            versions = [states.advance(wire, WireState.REJECTED, at=now, why=why_refused(decision))]
        else:
            accepted = decision.answer
            state = accepted.state or WireState.SUBMITTED
            versions = states.catch_up(wire, state, at=now, words=accepted.reason)
            is_loss = begun.found_means_lost and decision.was_found
        crash_point("payments.recording")
        if len(versions) == 1 and not is_loss:
            standing = await drive.commit(send_writes.RECORD, versions[0])
        else:
            # The wire was found: what the bank reported before may have come while it was not known here.
            async with drive.transaction() as connection:
                standing = await send_writes.save_unless_moved_on(connection, versions)
                if is_loss:
                    await continuity.note_missing(
                        connection, wires.PROVIDER, [str(wire.transaction_id)]
                    )
        crash_point("payments.recorded")
        version = versions[-1]
        if standing.was_accepted != version.was_accepted:
            self._log.error(
                "provider_contradicts_record",
                transaction_id=str(wire.transaction_id),
                state=standing.state,
                accepted=version.was_accepted,
            )
        return standing


def begun_of(
    wire: WireRecord, known: Earlier | None, lost: LostHistory | None, deadline: float
) -> Begun:
    """The wire whose send begins now, or goes on.

    Args:
        known: the sends before of which this database knows.
        lost: what this database may have lost of the wire.
        deadline: see `Begun`.
    """
    if lost is None:
        return Begun(wire, known, deadline)
    earlier = with_lost_history(known, lost.sends)
    return Begun(
        wire,
        earlier,
        deadline,
        is_held_back=lost.may_end_it,
        found_means_lost=known is None or wire.has_lost_sends_only,
    )


def verdict_reply(wire: WireRecord) -> Result:
    """The final answer to the sender of a wire: the bank accepted it, also when it was returned since.

    Raises:
        InvalidState: it was canceled before it was sent.
        ProviderRefused, or a more precise Conflict: it was rejected.
    """
    if wire.was_accepted:
        return Result(data=wire_result(wire))
    if wire.state is WireState.CANCELED:
        raise InvalidState(
            "The wire was canceled before it was sent.",
            extra={"transaction_id": str(wire.transaction_id)},
        )
    raise error_of(wire.transaction_id, wire.reason, wire.reason_detail)
