"""Lists of wires: a customer's, and the operator's."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.fields import BANK_ZONE
from libs.contracts.principal import Principal
from libs.contracts.wires import ListWires, WireState
from services.payments.models import WireRecord
from services.payments.repository.wires import COLUMNS, wire_of


async def page(
    connection: AsyncConnection, principal: Principal, asked: ListWires
) -> tuple[list[WireRecord], int]:
    """The newest first, and how many there are in all."""
    where = ["w.tenant = :tenant", "w.customer_id = :customer_id"]
    values: dict[str, Any] = {"tenant": principal.tenant, "customer_id": principal.customer_id}
    if asked.state is not None:
        where.append("w.state = :state")
        values["state"] = asked.state.value
    if asked.start_date is not None:
        where.append("w.created_at >= :start")
        values["start"] = _beginning_of(asked.start_date)
    if asked.end_date is not None and asked.end_date < date.max:
        where.append("w.created_at < :end")
        values["end"] = _beginning_of(asked.end_date + timedelta(days=1))
    found = " AND ".join(where)
    total = await connection.execute(
        text(f"SELECT count(*) FROM wires w WHERE {found}"),  # noqa: S608 - constants
        values,
    )
    rows = await connection.execute(
        text(
            f"SELECT {COLUMNS} FROM wires w WHERE {found}"  # noqa: S608 - constants
            " ORDER BY w.created_at DESC, w.transaction_id DESC LIMIT :limit OFFSET :offset"
        ),
        {**values, "limit": asked.limit, "offset": (asked.page - 1) * asked.limit},
    )
    return [wire_of(row) for row in rows], int(total.scalar_one())


def _beginning_of(day: date) -> datetime:
    """Midnight at the bank, as an instant."""
    return datetime.combine(day, time.min, BANK_ZONE).astimezone(UTC)


async def oldest(
    connection: AsyncConnection, state: WireState | None, *, unknown: bool, limit: int
) -> list[WireRecord]:
    """Wires of all tenants, for the operator; `unknown`: only those of which a send has begun with unknown outcome."""
    where = ["true"]
    values: dict[str, Any] = {"limit": limit}
    if state is not None:
        where.append("w.state = :state")
        values["state"] = state.value
    if unknown:
        where.append("w.state = 'pending_submission' AND w.send_begun_at IS NOT NULL")
    rows = await connection.execute(
        text(
            f"SELECT {COLUMNS} FROM wires w WHERE {' AND '.join(where)}"  # noqa: S608 - constants
            " ORDER BY w.created_at, w.transaction_id LIMIT :limit"
        ),
        values,
    )
    return [wire_of(row) for row in rows]
