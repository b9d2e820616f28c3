"""Decisions on wires that wait for approval (interface §9), each under the lock of the wire's row: of an approval, a
decline, a cancellation and an expiry that race, the first decides.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import NoReturn
from uuid import UUID, uuid5

from sqlalchemy import bindparam, func, literal, not_, select

from libs.contracts.errors import (
    ApproverIsInitiator,
    InvalidState,
    NotFound,
    OutcomePending,
    Unavailable,
)
from libs.contracts.payments_operations import APPROVE_WIRE
from libs.contracts.principal import Principal
from libs.contracts.wires import WireReason, WireState
from libs.handling.operating.auditing import record
from libs.handling.periodic import repeat
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import InternalCommand, enqueue
from libs.persistence.lost_history import has_lost_history
from services.payments import states
from services.payments.models import AbsentAtBank, WireRecord
from services.payments.reasons import Why
from services.payments.repository import policies, send_marks, wires
from services.payments.rules import Rules
from services.payments.tables import wires as table

EXPIRE_SECONDS = 15.0
EXPIRED_TOGETHER = 100
SEND_WAS_LOST = "The bank has the wire: that it was sent is what this database lost."

_EXPIRED = (
    select(table.c.transaction_id)
    .where(
        # A literal, as in the condition of the partial index.
        table.c.state == literal(WireState.PENDING_APPROVAL.value, literal_execute=True),
        # Unlike `clock_timestamp()`, it is stable, so that the index is used.
        table.c.approval_expires_at <= func.statement_timestamp(),
        not_(send_marks.WAS_FOUND_MISSING),
    )
    .order_by(table.c.approval_expires_at)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True)
)


async def approve(
    connection: AsyncConnection,
    rules: Rules,
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
    await rules.require_within_limits(connection, wire, now)
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
        absent: see `require_certainly_unsent`.

    Raises:
        InvalidState, ApproverIsInitiator: as `approve`.
        Unavailable: it is not known whether it was sent.
    """
    _require_decidable(wire, principal)
    await require_certainly_unsent(connection, wire, absent=absent)
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
    database: Database, rules: Rules, principal: Principal, transaction_id: UUID, *, reason: str
) -> WireRecord:
    """Approve a wire of any customer. An internal command sends it.

    Raises:
        NotFound: there is no such wire.
        InvalidState, LimitExceeded: as `approve`.
    """
    command_id = uuid5(transaction_id, APPROVE_WIRE.name)
    async with database.transaction() as connection:
        wire = await _locked(connection, transaction_id)
        approved = await approve(connection, rules, principal, wire, command_id, reason)
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


async def expire_for_ever(database: Database) -> NoReturn:
    """Cancel what was not decided on in time, every `EXPIRE_SECONDS`. Replicas share the wires."""

    async def expire_all() -> None:
        while await expire(database) == EXPIRED_TOGETHER:
            pass

    await repeat("approvals", expire_all, EXPIRE_SECONDS)


async def expire(database: Database) -> int:
    """Cancel at most `EXPIRED_TOGETHER` wires whose time has passed; how many there were. One whose send was found
    missing stays: the bank has it.
    """
    async with database.transaction() as connection:
        if await has_lost_history(connection):
            return 0
        found = await connection.execute(_EXPIRED, {"limit": EXPIRED_TOGETHER})
        expired = await wires.lock(connection, [row.transaction_id for row in found])
        now = datetime.now(UTC)
        await _save(
            connection,
            *(
                states.advance(
                    wire, WireState.CANCELED, at=now, why=Why(WireReason.APPROVAL_EXPIRED)
                )
                for wire in expired.values()
            ),
        )
    return len(expired)


async def require_certainly_unsent(
    connection: AsyncConnection, wire: WireRecord, *, absent: AbsentAtBank | None
) -> None:
    """Of a wire whose row is locked, and of which this database knows no send.

    Args:
        absent: None: core banking was not asked.

    Raises:
        InvalidState: the bank had it when its send was found missing, also once the case is closed.
        Unavailable: no key keeps it. This database may have gone back, as after each start of its server until it is
            checked, and the bank may have had a send that it does not know of.
    """
    lost = await send_marks.lost_sends(connection, wire.transaction_id)
    if lost.was_found_missing:
        raise InvalidState(SEND_WAS_LOST)
    if lost.lost_seconds is None:
        return
    if absent is None or lost.lost_seconds < absent.transit_seconds:
        raise Unavailable("It is being found out whether the wire was sent. Try again later.")


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


async def _save(connection: AsyncConnection, *versions: WireRecord) -> None:
    saved = await wires.save(connection, *versions)
    assert saved, "their rows are locked"
