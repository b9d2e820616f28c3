"""Wires and contradictions of all tenants, as reconciliation compares them with core banking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, any_, bindparam, case, exists, func, null, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import BigInteger

from libs.contracts.payments_operations import APPROVE_WIRE, SEND_WIRE
from libs.contracts.reconciliation import Contradiction, RecordedWire, Told
from libs.contracts.wires import WireState
from libs.handling.stored_commands import reply_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.payments.tables import contradiction, inbox, wire_history, wires

_LOWEST_ID = UUID(int=0)

_IS_STEP = wire_history.c.transaction_id == wires.c.transaction_id
_WIRES = select(
    wires.c.transaction_id,
    wires.c.tenant,
    wires.c.customer_id,
    wires.c.sending_account_id,
    wires.c.external_account_id,
    wires.c.amount,
    wires.c.state,
    wires.c.send_begun_at.is_not(None).label("send_begun"),
    exists().where(_IS_STEP, wire_history.c.state == WireState.SUBMITTED.value).label("accepted"),
    select(func.max(wire_history.c.at)).where(_IS_STEP).scalar_subquery().label("updated_at"),
    and_(
        inbox.c.command_id.is_not(None),
        inbox.c.finished_at.is_(None),
        inbox.c.parked_at.is_(None),
    ).label("command_open"),
    # That a wire waits for approval is no answer about its sending.
    case(
        (and_(wires.c.approval_expires_at.is_not(None), wires.c.approved_by.is_(None)), null()),
        else_=inbox.c.reply,
    ).label("reply"),
).select_from(
    wires.outerjoin(
        inbox,
        and_(
            inbox.c.command_id == func.coalesce(wires.c.approved_by, wires.c.transaction_id),
            inbox.c.operation.in_((SEND_WIRE.name, APPROVE_WIRE.name)),
        ),
    )
)
_WIRES_PAGE = (
    _WIRES.where(wires.c.transaction_id > bindparam("after"))
    .order_by(wires.c.transaction_id)
    .limit(bindparam("limit"))
)
_WIRES_BY_IDS = _WIRES.where(
    wires.c.transaction_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
)

_CONTRADICTIONS = select(
    contradiction.c.id.label("contradiction_id"),
    contradiction.c.kind,
    contradiction.c.transaction_id,
    contradiction.c.feed_position,
    contradiction.c.ours,
    contradiction.c.theirs,
    contradiction.c.recorded_at,
)
_CONTRADICTIONS_PAGE = (
    _CONTRADICTIONS.where(contradiction.c.id > bindparam("after"))
    .order_by(contradiction.c.id)
    .limit(bindparam("limit"))
)
_CONTRADICTIONS_BY_IDS = _CONTRADICTIONS.where(
    contradiction.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger)))
)


async def page_of_wires(
    connection: AsyncConnection, after: UUID | None, limit: int
) -> list[RecordedWire]:
    """In the order of their ids, from the first one after `after`."""
    rows = await connection.execute(_WIRES_PAGE, {"after": after or _LOWEST_ID, "limit": limit})
    return [_wire(row) for row in rows]


async def wires_by_ids(connection: AsyncConnection, ids: Sequence[UUID]) -> list[RecordedWire]:
    rows = await connection.execute(_WIRES_BY_IDS, {"ids": list(ids)})
    return [_wire(row) for row in rows]


async def page_of_contradictions(
    connection: AsyncConnection, after: int, limit: int
) -> list[Contradiction]:
    """In the order of their ids, from the first one after `after`."""
    rows = await connection.execute(_CONTRADICTIONS_PAGE, {"after": after, "limit": limit})
    return [Contradiction(**row._mapping) for row in rows]


async def contradictions_by_ids(
    connection: AsyncConnection, ids: Sequence[int]
) -> list[Contradiction]:
    rows = await connection.execute(_CONTRADICTIONS_BY_IDS, {"ids": list(ids)})
    return [Contradiction(**row._mapping) for row in rows]


def _wire(row: Row[Any]) -> RecordedWire:
    """The wire with what its sender was told. An answer that this release cannot read keeps no wire from being
    compared; its own wire is a difference (`wire_told`) until the answer can be read, so that none looks mended.
    """
    values = dict(row._mapping)
    stored = values.pop("reply")
    reply = None if stored is None else reply_of(stored)
    told = Told.NOTHING
    if reply is not None:
        told = Told.ACCEPTED if reply.error is None else Told.REFUSED
    return RecordedWire(
        **values | {"transaction_id": str(row.transaction_id)},
        told=told,
        is_answer_unreadable=stored is not None and reply is None,
    )
