"""Decisions on wires that wait for approval (interface §9), each under the lock of the wire's row: of an approval, a
decline, a cancellation and an expiry that race, the first decides.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

from libs.contracts.errors import ApproverIsInitiator, InvalidState, NotFound, OutcomePending
from libs.contracts.payments_operations import APPROVE_WIRE
from libs.contracts.principal import Principal
from libs.contracts.wires import WireReason, WireState
from libs.handling.operating.auditing import record
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import InternalCommand, enqueue
from libs.persistence.lost_history import has_lost_history
from services.payments import states
from services.payments.effective_policies import EffectivePolicies
from services.payments.models import AbsentAtBank, WireRecord
from services.payments.reasons import Why
from services.payments.repository import policies, send_marks, wires
from services.payments.unsent import SEND_WAS_LOST, require_no_lost_send


async def approve(
    connection: AsyncConnection,
    effective: EffectivePolicies,
    principal: Principal,
    wire: WireRecord,
    command_id: UUID,
    comment: str | None = None,
) -> WireRecord:
    """Approve the wire, whose row is locked. It is sent by this command.

    Raises:
        InvalidState: it does not wait for approval, or no longer. An operator may approve it late where this database
            may lack an approval that it had: the bank is asked about it before it is sent.
        OutcomePending: the time for approval is over, and this database may lack the customer's own approval.
        ApproverIsInitiator: the principal asked for the wire.
        LimitExceeded: a limit is exceeded now.
    """
    now = datetime.now(UTC)
    _require_decidable(wire, principal)
    if wire.approval_expires_at is not None and wire.approval_expires_at <= now:
        # Of a database that went back it may be the approval that is missing, while the bank carried the wire out.
        lost = await send_marks.lost_sends(connection, wire.transaction_id)
        if not lost.are_possible:
            raise InvalidState("The wire waited for approval for too long.")
        if principal.operator is None and lost.lost_seconds is None:
            raise InvalidState(SEND_WAS_LOST)
        if principal.operator is None:
            raise OutcomePending
    await policies.lock_limits(connection, wire.tenant, wire.customer_id)
    await effective.require_within_limits(connection, wire, now)
    pending = states.advance(
        wire, WireState.PENDING_SUBMISSION, at=now, by=principal.actor, why=Why(comment=comment)
    )
    approved = replace(pending, approved_at=now, approved_by=command_id)
    await _save(connection, approved)
    return approved


async def decline(
    connection: AsyncConnection,
    principal: Principal,
    wire: WireRecord,
    comment: str,
    command_id: UUID | None = None,
    *,
    absent: AbsentAtBank | None = None,
) -> WireRecord:
    """Cancel the wire, whose row is locked.

    Args:
        absent: see `require_no_lost_send`.

    Raises:
        InvalidState, ApproverIsInitiator: as `approve`.
        Unavailable: it is not known whether it was sent.
    """
    _require_decidable(wire, principal)
    await require_no_lost_send(connection, wire, absent=absent)
    canceled = states.advance(
        wire,
        WireState.CANCELED,
        at=datetime.now(UTC),
        why=Why(WireReason.DECLINED, comment=comment),
        by=principal.actor,
    )
    declined = replace(canceled, canceled_by=command_id)
    await _save(connection, declined)
    return declined


async def approve_as_operator(
    database: Database,
    effective: EffectivePolicies,
    principal: Principal,
    transaction_id: UUID,
    *,
    reason: str,
) -> WireRecord:
    """Approve a wire of any customer. An internal command sends it.

    Raises:
        NotFound: there is no such wire.
        InvalidState, LimitExceeded: as `approve`.
    """
    command_id = uuid5(transaction_id, APPROVE_WIRE.name)
    async with database.transaction() as connection:
        wire = await _locked(connection, transaction_id)
        approved = await approve(connection, effective, principal, wire, command_id, reason)
        if await has_lost_history(connection):
            # So that the bank is asked first also where the case is closed before the send is driven.
            await send_marks.begin_send(connection, transaction_id)
            await send_marks.mark_lost_sends(connection, transaction_id)
        await enqueue(
            connection,
            InternalCommand(
                command_id=command_id,
                operation=APPROVE_WIRE.name,
                ordering_key=None,
                principal=principal,
                body={"transaction_id": str(transaction_id)},
                keep_for_ever=True,
            ),
        )
        await record(
            connection,
            principal,
            "wires.approve",
            transaction_id=str(transaction_id),
            command_id=str(command_id),
            reason=reason,
        )
    return approved


async def decline_as_operator(
    database: Database,
    principal: Principal,
    transaction_id: UUID,
    *,
    reason: str,
    absent: AbsentAtBank | None = None,
) -> WireRecord:
    """Decline a wire of any customer. Raises NotFound, InvalidState, Unavailable."""
    async with database.transaction() as connection:
        wire = await _locked(connection, transaction_id)
        declined = await decline(connection, principal, wire, reason, absent=absent)
        await record(
            connection,
            principal,
            "wires.decline",
            transaction_id=str(transaction_id),
            reason=reason,
        )
    return declined


def _require_decidable(wire: WireRecord, principal: Principal) -> None:
    if not wire.waits_for_approval:
        raise InvalidState(f"The wire is {wire.state}.")
    if principal.operator is None and principal.subscription_key == wire.initiator:
        raise ApproverIsInitiator


async def _locked(connection: AsyncConnection, transaction_id: UUID) -> WireRecord:
    wire = (await wires.lock(connection, [transaction_id])).get(transaction_id)
    if wire is None:
        raise NotFound
    return wire


async def _save(connection: AsyncConnection, version: WireRecord) -> None:
    saved = await wires.save(connection, version)
    assert saved, "its row is locked"
