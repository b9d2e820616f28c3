"""Wires and their history.

What a caller asks for is scoped by tenant and customer. What core banking reports is not, since it knows our ids only.
A version of a wire is saved only on top of the version before, with its step of the history and its event, in one
transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from uuid import UUID

import msgspec
from sqlalchemy import (
    Boolean,
    Integer,
    Text,
    and_,
    any_,
    bindparam,
    case,
    column,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.events import Event
from libs.contracts.ids import parse_made_id
from libs.contracts.principal import Principal
from libs.contracts.wires import WireState
from libs.persistence import outbox
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Compared
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.payments.models import WireRecord
from services.payments.repository.stored_wires import BY_IDS, HAS_LOST_SENDS_ONLY, SELECT, wire_of
from services.payments.tables import inbox, wire_history
from services.payments.tables import wires as table
from services.payments.views import wire_event

PROVIDER = "core"
"""What `libs.persistence.continuity` calls the bank that holds wires."""
UNSENT = (WireState.PENDING_APPROVAL, WireState.PENDING_SUBMISSION, WireState.CANCELED)
"""States in which a wire may be of which nothing was sent."""

_IS_ONE_OF = table.c.transaction_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
_IS_OWN = (
    table.c.transaction_id == bindparam("id"),
    table.c.tenant == bindparam("tenant"),
    table.c.customer_id == bindparam("customer_id"),
)
_LOCK = (
    select(table.c.transaction_id, ENDED_WHEN_IDLE)
    .where(_IS_ONE_OF)
    .order_by(table.c.transaction_id)
    .with_for_update(key_share=True)
)
_APPROVED_BY = select(table.c.transaction_id).where(table.c.approved_by == bindparam("id"))
_FIND_OWN = SELECT.where(*_IS_OWN)
_LOCK_OWN = select(table.c.transaction_id).where(*_IS_OWN).with_for_update(key_share=True)

_BEGUN = case((bindparam("is_pending", type_=Boolean), func.statement_timestamp()))
_INSERT = insert(table).values(sequence=1, send_begun_at=_BEGUN, last_sent_at=_BEGUN)
_INSERT_FIRST_STEP = insert(wire_history).values(sequence=1)

_latest = (
    func.unnest(
        bindparam("ids", type_=ARRAY(UUID_TYPE)),
        bindparam("before", type_=ARRAY(Integer)),
        bindparam("states", type_=ARRAY(Text)),
        bindparam("sequences", type_=ARRAY(Integer)),
        bindparam("cancelers", type_=ARRAY(UUID_TYPE)),
        bindparam("approvals", type_=ARRAY(INSTANT)),
        bindparam("approvers", type_=ARRAY(UUID_TYPE)),
    )
    .table_valued(
        column("id", UUID_TYPE),
        column("before", Integer),
        column("state", Text),
        column("sequence", Integer),
        column("canceled_by", UUID_TYPE),
        column("approved_at", INSTANT),
        column("approved_by", UUID_TYPE),
    )
    .render_derived(name="version")
)
_steps = (
    func.unnest(
        bindparam("step_ids", type_=ARRAY(UUID_TYPE)),
        bindparam("step_sequences", type_=ARRAY(Integer)),
        bindparam("step_states", type_=ARRAY(Text)),
        bindparam("step_reasons", type_=ARRAY(Text)),
        bindparam("step_moments", type_=ARRAY(INSTANT)),
        bindparam("step_actors", type_=ARRAY(Text)),
        bindparam("step_comments", type_=ARRAY(Text)),
        bindparam("step_reason_details", type_=ARRAY(Text)),
    )
    .table_valued(
        column("id", UUID_TYPE),
        column("sequence", Integer),
        column("state", Text),
        column("reason", Text),
        column("at", INSTANT),
        column("by", Text),
        column("comment", Text),
        column("reason_detail", Text),
    )
    .render_derived(name="step")
)
# The limit keeps all rows. It makes the planner expect few, so that each wire is found by its key even by a plan that
# was made, and cached, while the table was empty.
_version = (
    select(_latest)
    .limit(func.cardinality(bindparam("ids", type_=ARRAY(UUID_TYPE))))
    .subquery("latest")
)
_saved = (
    update(table)
    .where(table.c.transaction_id == _version.c.id, table.c.sequence == _version.c.before)
    .values(
        state=_version.c.state,
        sequence=_version.c.sequence,
        canceled_by=_version.c.canceled_by,
        approved_at=_version.c.approved_at,
        approved_by=_version.c.approved_by,
    )
    .returning(table.c.transaction_id)
    .cte("saved")
)
_history_written = (
    insert(wire_history)
    .from_select(
        ["transaction_id", "sequence", "state", "reason", "at", "by", "comment", "reason_detail"],
        select(_steps).join(_saved, _saved.c.transaction_id == _steps.c.id),
    )
    .cte("history_written")
)
_SAVE = select(func.count()).select_from(_saved).add_cte(_history_written)

# A wire has its mark before it is sent, or was brought to a later state by what the bank reports. The bank had accepted
# it by the time when its command was final; that of a wire that waits for approval is final before anything is sent.
_NOT_SENT = and_(
    or_(table.c.send_begun_at.is_(None), HAS_LOST_SENDS_ONLY),
    table.c.state.in_([state.value for state in UNSENT]),
)
_COMPARED = (
    select(
        table.c.transaction_id,
        not_(_NOT_SENT).label("is_sent"),
        case((table.c.send_begun_at.is_not(None), inbox.c.finished_at)).label("settled_at"),
    )
    .select_from(
        table.outerjoin(
            inbox,
            inbox.c.command_id == func.coalesce(table.c.approved_by, table.c.transaction_id),
        )
    )
    .where(_IS_ONE_OF)
)

_CAUSES = (
    select(table.c.transaction_id, inbox.c.request_id, inbox.c.trace_context)
    .join_from(
        table,
        inbox,
        inbox.c.command_id == func.coalesce(table.c.approved_by, table.c.transaction_id),
    )
    .where(_IS_ONE_OF)
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Of a wire: the request that asked for its send, and the span that sent the command (`libs.tracing`)."""

    request_id: str
    trace: str | None


NO_CAUSES: Mapping[UUID, Cause] = MappingProxyType({})


async def causes(
    connection: AsyncConnection, transaction_ids: Collection[UUID]
) -> dict[UUID, Cause]:
    """Of those of the wires whose commands are still recorded."""
    rows = await connection.execute(_CAUSES, {"ids": list(transaction_ids)})
    return {row.transaction_id: Cause(row.request_id, row.trace_context) for row in rows}


async def insert_new(connection: AsyncConnection, wire: WireRecord) -> None:
    """Record a wire with its first step and its event; the send of one that is pending begins with the commit."""
    await connection.execute(
        _INSERT,
        {
            "transaction_id": wire.transaction_id,
            "tenant": wire.tenant,
            "customer_id": wire.customer_id,
            "sending_account_id": wire.sending_account_id,
            "external_account_id": wire.external_account_id,
            "amount": wire.amount,
            "purpose": wire.purpose,
            "state": wire.state.value,
            "is_pending": wire.is_pending,
            "created_at": wire.created_at,
            "creditor": wire.creditor and msgspec.to_builtins(wire.creditor),
            "approval_expires_at": wire.approval_expires_at,
        },
    )
    step = wire.history[0]
    await connection.execute(
        _INSERT_FIRST_STEP,
        {
            "transaction_id": wire.transaction_id,
            "state": step.state.value,
            "reason": step.reason,
            "at": step.at,
            "by": step.by,
        },
    )
    await outbox.record(connection, wire_event(wire))


async def save(
    connection: AsyncConnection, *versions: WireRecord, causes: Mapping[UUID, Cause] = NO_CAUSES
) -> bool:
    """Save versions of wires, those of one wire in their order, with their events.

    Returns False when a wire has moved on meanwhile, of which then nothing is saved. The caller must not commit that,
    unless it saves one wire only.

    Args:
        causes: of wires that are not saved for the request that this task works for.
    """
    if not versions:
        return True
    latest = {wire.transaction_id: wire for wire in versions}
    first: dict[UUID, WireRecord] = {}
    for wire in versions:
        first.setdefault(wire.transaction_id, wire)
    saved = await connection.execute(
        _SAVE,
        {
            "ids": list(latest),
            "before": [first[transaction_id].sequence - 1 for transaction_id in latest],
            "states": [wire.state.value for wire in latest.values()],
            "sequences": [wire.sequence for wire in latest.values()],
            "cancelers": [wire.canceled_by for wire in latest.values()],
            "approvals": [wire.approved_at for wire in latest.values()],
            "approvers": [wire.approved_by for wire in latest.values()],
            "step_ids": [wire.transaction_id for wire in versions],
            "step_sequences": [wire.sequence for wire in versions],
            "step_states": [wire.state.value for wire in versions],
            "step_reasons": [wire.reason for wire in versions],
            "step_moments": [wire.updated_at for wire in versions],
            "step_actors": [wire.history[-1].by for wire in versions],
            "step_comments": [wire.history[-1].comment for wire in versions],
            "step_reason_details": [wire.reason_detail for wire in versions],
        },
    )
    if saved.scalar_one() != len(latest):
        return False
    events = [_caused(wire_event(wire), causes.get(wire.transaction_id)) for wire in versions]
    await outbox.record(connection, *events)
    return True


def _caused(event: Event, cause: Cause | None) -> Event:
    if cause is None:
        return event
    return replace(event, request_id=cause.request_id, trace=cause.trace)


async def lock(
    connection: AsyncConnection, transaction_ids: Collection[UUID]
) -> dict[UUID, WireRecord]:
    """The wires with these ids, of any tenant, their rows locked until the transaction ends."""
    values = {"ids": list(transaction_ids)}
    await connection.execute(_LOCK, values)
    # A second statement, since the first does not see the history that the lock waited for.
    rows = await connection.execute(BY_IDS, values)
    return {row.transaction_id: wire_of(row) for row in rows}


async def lock_sent_by(connection: AsyncConnection, command_id: UUID) -> WireRecord | None:
    """The wire that this command sends, its row locked until the transaction ends."""
    approved = await connection.execute(_APPROVED_BY, {"id": command_id})
    transaction_id = approved.scalar_one_or_none() or command_id
    wire = (await lock(connection, [transaction_id])).get(transaction_id)
    return wire if wire is not None and wire.send_command == command_id else None


async def find(
    connection: AsyncConnection,
    principal: Principal,
    transaction_id: UUID,
    *,
    for_change: bool = False,
) -> WireRecord | None:
    """The wire, when it is the principal's.

    Args:
        for_change: lock its row until the transaction ends.
    """
    values = {
        "id": transaction_id,
        "tenant": principal.tenant,
        "customer_id": principal.customer_id,
    }
    if for_change:
        await connection.execute(_LOCK_OWN, values)
    row = (await connection.execute(_FIND_OWN, values)).first()
    return None if row is None else wire_of(row)


async def find_any(connection: AsyncConnection, transaction_id: UUID) -> WireRecord | None:
    """A wire of any tenant, for operators."""
    row = (await connection.execute(BY_IDS, {"ids": [transaction_id]})).first()
    return None if row is None else wire_of(row)


async def compare(
    connection: AsyncConnection, transaction_ids: Sequence[str], trusted_until: datetime
) -> Compared:
    """Compare wires that the bank holds with those of all tenants here. See `libs.persistence.continuity`.

    A wire that the bank holds and that was not sent, as far as its row knows, is missing like one without a row: its
    approval and its send are what the database lost. A text that cannot be one of our ids names a wire that this system
    did not send, and is left out.
    """
    ids = [known for known in map(parse_made_id, transaction_ids) if known is not None]
    rows = (await connection.execute(_COMPARED, {"ids": ids})).all()
    sent = {row.transaction_id for row in rows if row.is_sent}
    return Compared(
        missing=[str(each) for each in ids if each not in sent],
        reaches_back=any(
            row.settled_at is not None and row.settled_at < trusted_until for row in rows
        ),
    )
