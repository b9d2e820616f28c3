"""Wires as they are stored: the columns of a wire with its history, and the record that a row of them makes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Row, Select, any_, bindparam, false, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by

from libs.contracts.wires import WireState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE, seconds_since
from services.payments.models import Creditor, Step, WireRecord
from services.payments.reasons import why_recorded
from services.payments.tables import wire_history
from services.payments.tables import wires as table


def _in_order(each: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.array_agg(aggregate_order_by(each, wire_history.c.sequence))


_HISTORY = (
    select(
        _in_order(wire_history.c.state).label("states"),
        _in_order(wire_history.c.at).label("moments"),
        _in_order(wire_history.c.reason).label("reasons"),
        _in_order(wire_history.c.by).label("actors"),
        _in_order(wire_history.c.comment).label("comments"),
        _in_order(wire_history.c.reason_detail).label("reason_details"),
    )
    .where(wire_history.c.transaction_id == table.c.transaction_id)
    .lateral("history")
)
# The marks of a send were made, and nothing was sent since: see `send_marks.mark_lost_sends`.
HAS_LOST_SENDS_ONLY = func.coalesce(table.c.last_sent_at < table.c.send_begun_at, false())
SELECT: Select[Any] = select(
    table.c.transaction_id,
    table.c.tenant,
    table.c.customer_id,
    table.c.sending_account_id,
    table.c.external_account_id,
    table.c.amount,
    table.c.purpose,
    seconds_since(table.c.send_begun_at).label("send_age_seconds"),
    table.c.last_sent_at,
    seconds_since(table.c.last_sent_at).label("last_send_age_seconds"),
    HAS_LOST_SENDS_ONLY.label("has_lost_sends_only"),
    table.c.canceled_by,
    table.c.created_at,
    table.c.creditor,
    table.c.approval_expires_at,
    table.c.approved_at,
    table.c.approved_by,
    _HISTORY.c.states,
    _HISTORY.c.moments,
    _HISTORY.c.reasons,
    _HISTORY.c.actors,
    _HISTORY.c.comments,
    _HISTORY.c.reason_details,
).select_from(table.join(_HISTORY, true()))
"""The columns that `wire_of` reads, of every wire."""
BY_IDS = SELECT.where(table.c.transaction_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))


async def by_ids(connection: AsyncConnection, ids: Sequence[UUID]) -> list[WireRecord]:
    """Wires of any tenant in the order of the ids; those that are of no wire are left out."""
    rows = await connection.execute(BY_IDS, {"ids": list(ids)})
    found = {row.transaction_id: wire_of(row) for row in rows}
    return [found[each] for each in ids if each in found]


def wire_of(row: Row[Any]) -> WireRecord:
    """The wire of a row of `SELECT`."""
    steps = zip(
        row.states,
        row.moments,
        row.reasons,
        row.actors,
        row.comments,
        row.reason_details,
        strict=True,
    )
    return WireRecord(
        transaction_id=row.transaction_id,
        tenant=row.tenant,
        customer_id=row.customer_id,
        sending_account_id=row.sending_account_id,
        external_account_id=row.external_account_id,
        amount=row.amount,
        purpose=row.purpose,
        send_age_seconds=row.send_age_seconds,
        last_sent_at=row.last_sent_at,
        last_send_age_seconds=row.last_send_age_seconds,
        has_lost_sends_only=row.has_lost_sends_only,
        canceled_by=row.canceled_by,
        created_at=row.created_at,
        creditor=None if row.creditor is None else msgspec.convert(row.creditor, Creditor),
        approval_expires_at=row.approval_expires_at,
        approved_at=row.approved_at,
        approved_by=row.approved_by,
        history=tuple(_step(*step) for step in steps),
    )


def _step(
    state: str,
    at: datetime,
    reason: str | None,
    by: str | None,
    comment: str | None,
    detail: str | None,
) -> Step:
    why = why_recorded(WireState(state), reason, detail, by, comment)
    return Step(WireState(state), at, why.reason, by, why.comment, why.detail)
