"""Wires and contradictions of all tenants, in pages: what payments tells reconciliation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.reconciliation import Contradiction, HeldWire, Told
from libs.messaging.envelope import decode_reply

FIRST_ID = UUID(int=0)
"""Below every id that is given."""

_WIRE = """
    SELECT w.transaction_id, w.tenant, w.customer_id, w.sending_account_id, w.external_account_id, w.amount, w.state,
        w.send_begun_at IS NOT NULL AS send_begun,
        EXISTS (SELECT FROM wire_history h WHERE h.transaction_id = w.transaction_id AND h.state = 'submitted')
            AS accepted,
        (SELECT max(h.at) FROM wire_history h WHERE h.transaction_id = w.transaction_id) AS updated_at,
        i.command_id IS NOT NULL AND i.finished_at IS NULL AND i.parked_at IS NULL AS command_open, i.reply
    FROM wires w LEFT JOIN inbox i ON i.command_id = w.transaction_id AND i.operation = :operation
"""
_PAGE = text(_WIRE + " WHERE w.transaction_id > :after ORDER BY w.transaction_id LIMIT :limit")
_BY_IDS = text(_WIRE + " WHERE w.transaction_id = ANY(:ids)")

_CONTRADICTION = (
    "SELECT id AS contradiction_id, kind, transaction_id, feed_position,"
    " ours, theirs, recorded_at FROM contradiction"
)
_CONTRADICTIONS_PAGE = text(_CONTRADICTION + " WHERE id > :after ORDER BY id LIMIT :limit")
_CONTRADICTIONS_BY_IDS = text(_CONTRADICTION + " WHERE id = ANY(:ids)")


async def page_of_wires(
    connection: AsyncConnection, after: UUID | None, limit: int
) -> list[HeldWire]:
    """In the order of their ids."""
    rows = await connection.execute(
        _PAGE, {"operation": SEND_WIRE.name, "after": after or FIRST_ID, "limit": limit}
    )
    return [_wire(row) for row in rows]


async def wires_by_ids(connection: AsyncConnection, ids: Sequence[UUID]) -> list[HeldWire]:
    rows = await connection.execute(_BY_IDS, {"operation": SEND_WIRE.name, "ids": list(ids)})
    return [_wire(row) for row in rows]


async def page_of_contradictions(
    connection: AsyncConnection, after: int, limit: int
) -> list[Contradiction]:
    rows = await connection.execute(_CONTRADICTIONS_PAGE, {"after": after, "limit": limit})
    return [Contradiction(**row._mapping) for row in rows]


async def contradictions_by_ids(
    connection: AsyncConnection, ids: Sequence[int]
) -> list[Contradiction]:
    rows = await connection.execute(_CONTRADICTIONS_BY_IDS, {"ids": list(ids)})
    return [Contradiction(**row._mapping) for row in rows]


def _wire(row: Row[Any]) -> HeldWire:
    values = dict(row._mapping)
    reply = values.pop("reply")
    return HeldWire(**values | {"transaction_id": str(row.transaction_id)}, told=_told(reply))


def _told(reply: bytes | None) -> Told:
    if reply is None:
        return Told.NOTHING
    return Told.ACCEPTED if decode_reply(reply).error is None else Told.REFUSED
