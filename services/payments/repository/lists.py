"""Lists and counts of wires: a customer's pages, the figures of the metrics."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import bindparam, extract, func, literal, select

from libs.contracts.bank_days import BANK_ZONE
from libs.contracts.principal import Principal
from libs.contracts.wires import ListWires, WireState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.payments.models import WireRecord
from services.payments.repository.stored_wires import by_ids
from services.payments.tables import wires as table

BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)

_MATCHES = (
    table.c.tenant == bindparam("tenant"),
    table.c.customer_id == bindparam("customer_id"),
    table.c.created_at >= bindparam("start", type_=INSTANT),
    table.c.created_at < bindparam("end", type_=INSTANT),
)
_IN_STATE = table.c.state == bindparam("state")
_PAGE = (
    select(table.c.transaction_id)
    .where(*_MATCHES)
    .order_by(table.c.created_at.desc(), table.c.transaction_id.desc())
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)
_PAGE_IN_STATE = _PAGE.where(_IN_STATE)
_COUNT = select(func.count()).select_from(table).where(*_MATCHES)
_COUNT_IN_STATE = _COUNT.where(_IN_STATE)
_COUNT_OF_ALL = select(func.count()).select_from(table).where(_IN_STATE)
_OLDEST_UNKNOWN_SECONDS = select(
    extract("epoch", func.clock_timestamp(type_=INSTANT) - func.min(table.c.send_begun_at))
).where(
    # A literal, as in the condition of the partial index.
    table.c.state == literal(WireState.PENDING_SUBMISSION.value, literal_execute=True)
)


async def page(
    connection: AsyncConnection, principal: Principal, query: ListWires
) -> tuple[list[WireRecord], int]:
    """A page of the customer's wires, the newest first, and the number of those that match. Called in a snapshot."""
    start, end = period_of(query.start_date, query.end_date)
    values: dict[str, Any] = {
        "tenant": principal.tenant,
        "customer_id": principal.customer_id,
        "start": start,
        "end": end,
    }
    if query.state is not None:
        values["state"] = query.state.value
    counted = await connection.execute(_COUNT_IN_STATE if query.state else _COUNT, values)
    total, offset = int(counted.scalar_one()), (query.page - 1) * query.limit
    if offset >= total:
        return [], total  # without a walk over all of them
    found = await connection.execute(
        _PAGE_IN_STATE if query.state else _PAGE,
        {**values, "limit": query.limit, "offset": offset},
    )
    # The histories of the wires of the page alone are read, and not of those before it.
    return await by_ids(connection, found.scalars().all()), total


def period_of(first: date | None, last: date | None) -> tuple[datetime, datetime]:
    """From the beginning of the first day at the bank to the end of the last; None: without a bound."""
    start, end = BEGINNING_OF_TIME, _END_OF_TIME
    if first is not None:
        start = midnight(first)
    if last is not None and last < date.max:
        end = midnight(last + timedelta(days=1))
    return start, end


def midnight(day: date) -> datetime:
    """The beginning of a day at the bank."""
    return datetime.combine(day, time.min, BANK_ZONE).astimezone(UTC)


async def count_in_state(connection: AsyncConnection, state: WireState) -> int:
    """The wires of all customers in the state."""
    counted = await connection.execute(_COUNT_OF_ALL, {"state": state.value})
    return int(counted.scalar_one())


async def oldest_unknown_seconds(connection: AsyncConnection) -> float:
    """The age of the oldest first send whose outcome is not known; 0 when there is none."""
    age = await connection.execute(_OLDEST_UNKNOWN_SECONDS)
    return float(age.scalar_one() or 0)
