"""Operators' decisions on wires: what became of one whose outcome is not known, and canceling one that was not sent.

Each is one transaction with its audit row. The send's command is locked before its wire, as a driver does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.principal import Principal
from libs.contracts.wires import WireReason, WireState
from libs.handling.operating.auditing import record
from libs.handling.operating.holding import hold
from libs.persistence import open_commands
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.open_commands import OpenCommand
from libs.providers.writing import with_lost_history
from services.payments import states
from services.payments.models import AbsentAtBank, WireAtBank, WireRecord
from services.payments.reasons import Why
from services.payments.repository import send_marks, wires
from services.payments.unsent import require_unsent


async def resolve_wire(
    database: Database,
    principal: Principal,
    transaction_id: UUID,
    decision: WireState | None,
    *,
    reason: str,
    transit_seconds: float,
) -> WireRecord:
    """Record the decision, if any, and have the wire's send driven now. Returns the wire as it then is.

    Args:
        principal: the operator.
        decision: submitted or rejected; None has the provider asked again.
        reason: stands in the wire's history beside the decision.
        transit_seconds: a send arrives within this time of its beginning, or never.

    Raises:
        NotFound: there is no such wire.
        InvalidState: its outcome is known, its send is under way, or it would be rejected while its last send may still
            arrive: then it is held.
    """
    async with database.transaction() as connection:
        send, wire = await _locked(connection, transaction_id)
        if send is None:
            raise InvalidState(f"The wire is {wire.state}: its sender has its answer.")
        if decision is not None:
            if not wire.is_unknown:
                raise InvalidState("Only a wire whose outcome is unknown can be decided on.")
            if send.is_driven:
                raise InvalidState("The provider is being asked right now. Try again shortly.")
        in_transit = 0.0
        if decision is WireState.REJECTED:
            in_transit = await _seconds_in_transit(connection, wire, transit_seconds)
        if not in_transit:
            return await _record_decision(connection, principal, wire, decision, reason)
        held = await hold(
            connection,
            principal,
            "wires.hold",
            wire.send_command,
            transit_seconds=in_transit,
            reason=reason,
            transaction_id=str(transaction_id),
        )
    raise held


async def record_shown(
    database: Database,
    principal: Principal,
    transaction_id: UUID,
    shown: WireAtBank | None,
    *,
    reason: str,
) -> WireRecord:
    """Bring a wire that is submitted or completed into the state in which the bank shows it. What the bank reported of
    it may have come while it was not known here, as where a restored database got it back by its caller's repetition,
    or its entry of the feed was skipped.

    Raises:
        NotFound: there is no such wire.
        InvalidState: the bank does not know it, or in a state that cannot follow.
    """
    if shown is None:
        raise InvalidState("The bank does not know the wire.")
    if shown.state is None:
        raise InvalidState(f"The bank has the wire in a state that is not known: {shown.status}.")
    async with database.transaction() as connection:
        _, wire = await _locked(connection, transaction_id)
        if not shown.is_of(wire):
            raise InvalidState("The bank has another wire under the id.")
        try:
            versions = states.catch_up(wire, shown.state, at=datetime.now(UTC), words=shown.reason)
        except states.IllegalTransition as illegal:
            raise InvalidState(f"The bank has the wire as {shown.state}: {illegal}.") from illegal
        saved = await wires.save(connection, *versions)
        assert saved, "its row is locked"
        await open_commands.make_due(connection, wire.send_command, unpark=True)
        await record(
            connection,
            principal,
            "wires.resolve",
            transaction_id=str(transaction_id),
            decision=None,
            reason=reason,
        )
    return versions[-1] if versions else wire


async def cancel_wire(
    database: Database,
    principal: Principal,
    transaction_id: UUID,
    *,
    reason: str,
    absent: AbsentAtBank | None = None,
) -> WireRecord:
    """Cancel a wire of which certainly nothing was sent. Its sender is then answered `invalid_state`.

    Args:
        absent: see `unsent.require_no_lost_send`.

    Raises:
        NotFound: there is no such wire.
        InvalidState: it may have been sent, or is over.
        Unavailable: it is not known whether it was sent.
    """
    async with database.transaction() as connection:
        _, wire = await _locked(connection, transaction_id)
        await require_unsent(connection, wire, absent=absent)
        why = Why(WireReason.CANCELED_BY_OPERATOR, comment=reason)
        wire = await _advance(connection, wire, WireState.CANCELED, why, by=principal.actor)
        await open_commands.make_due(connection, wire.send_command, unpark=True)
        await record(
            connection,
            principal,
            "wires.cancel",
            transaction_id=str(transaction_id),
            reason=reason,
        )
    return wire


async def _locked(
    connection: AsyncConnection, transaction_id: UUID
) -> tuple[OpenCommand | None, WireRecord]:
    """The command that sends the wire, None when that is over, and the wire."""
    known = await wires.find_any(connection, transaction_id)
    if known is None:
        raise NotFound
    send = await open_commands.lock(connection, known.send_command)
    wire = (await wires.lock(connection, [transaction_id]))[transaction_id]
    if wire.send_command != known.send_command:
        raise InvalidState("The wire was approved just now. Try again.")
    return send, wire


async def _record_decision(
    connection: AsyncConnection,
    principal: Principal,
    wire: WireRecord,
    decision: WireState | None,
    reason: str,
) -> WireRecord:
    if decision is not None:
        why = Why(WireReason.DECIDED_BY_OPERATOR, comment=reason)
        wire = await _advance(connection, wire, decision, why, by=principal.actor)
    await open_commands.make_due(connection, wire.send_command, unpark=True)
    await record(
        connection,
        principal,
        "wires.resolve",
        transaction_id=str(wire.transaction_id),
        decision=decision.value if decision else None,
        reason=reason,
    )
    return wire


async def _seconds_in_transit(
    connection: AsyncConnection, wire: WireRecord, transit_seconds: float
) -> float:
    """For how long the last send of a wire may still arrive."""
    lost = await send_marks.lost_history(connection, wire)
    earlier = with_lost_history(wire.earlier_sends, lost.sends if lost else None)
    return 0.0 if earlier is None else earlier.seconds_in_transit(transit_seconds)


async def _advance(
    connection: AsyncConnection, wire: WireRecord, state: WireState, why: Why, *, by: str
) -> WireRecord:
    following = states.advance(wire, state, at=datetime.now(UTC), why=why, by=by)
    saved = await wires.save(connection, following)
    assert saved, "its row is locked"
    return following
