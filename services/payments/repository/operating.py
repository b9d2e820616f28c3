"""What operators read of wires: pages over all tenants, and the request that asked for a wire.

A page is read by key. Without a state, it is put together from the pages of all states, each of which an index has in
order: so a page of one tenant, or of all, costs as much as its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Select,
    bindparam,
    literal,
    not_,
    or_,
    select,
    tuple_,
)

from libs.contracts.ids import parse_id
from libs.contracts.operating.pages import FIRST_ID, LAST_ID, Order
from libs.contracts.operating.wires import ListOperatorWires
from libs.contracts.wires import WireState
from libs.handling.stored_commands import principal_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order, merged
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.payments.models import WireRecord
from services.payments.repository.lists import BEGINNING_OF_TIME, period_of
from services.payments.repository.stored_wires import by_ids
from services.payments.tables import inbox
from services.payments.tables import wires as table

PRECISION = timedelta(microseconds=1)
"""Of times in the database."""
MOST_COMMANDS = 50
"""Commands of one request that are found, at most."""

_T = table.c
_KEY = tuple_(_T.created_at, _T.transaction_id)
_EDGE = tuple_(bindparam("edge_at", type_=INSTANT), bindparam("edge_id", type_=UUID_TYPE))
_FROM_START = _T.created_at >= bindparam("start", type_=INSTANT)
_TO_END = _T.created_at < bindparam("end", type_=INSTANT)
_OF_TENANT = _T.tenant == bindparam("tenant")
_OF_CUSTOMER = (_OF_TENANT, _T.customer_id == bindparam("customer_id"))
_IN_STATE = _T.state == bindparam("state")
_IS_UNKNOWN_IF_WANTED = or_(
    not_(bindparam("unknown", type_=Boolean)), _T.send_begun_at.is_not(None)
)


def _page(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The keys of the rows that follow the edge, which lies within the period: a scan begins there."""
    within = _FROM_START if order is Order.NEWEST else _TO_END
    return (
        select(_T.created_at, _T.transaction_id)
        .where(beyond(_KEY, _EDGE, order), within, *conditions)
        .order_by(*in_order(order, _T.created_at, _T.transaction_id))
        .limit(bindparam("limit"))
    )


def _page_of_all_states(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    # Literals, so that each part has one state for the planner.
    parts = (
        _page(order, _T.state == literal(state.value, literal_execute=True), *conditions)
        for state in WireState
    )
    return merged(parts, order)


_PAGES = {order: _page_of_all_states(order) for order in Order}
_PAGES_IN_STATE = {order: _page(order, _IN_STATE, _IS_UNKNOWN_IF_WANTED) for order in Order}
_PAGES_OF_TENANT = {order: _page_of_all_states(order, _OF_TENANT) for order in Order}
_PAGES_OF_TENANT_IN_STATE = {
    order: _page(order, _IN_STATE, _IS_UNKNOWN_IF_WANTED, _OF_TENANT) for order in Order
}
_PAGES_OF_CUSTOMER = {order: _page(order, *_OF_CUSTOMER) for order in Order}
_PAGES_OF_CUSTOMER_IN_STATE = {
    order: _page(order, _IN_STATE, _IS_UNKNOWN_IF_WANTED, *_OF_CUSTOMER) for order in Order
}
# In the order of an index, which then gives the first one: of a customer with many wires, the planner would read the
# table until it finds any.
_TENANT = (
    select(_T.tenant).where(_T.customer_id == bindparam("customer_id")).order_by(_T.tenant).limit(1)
)
_REQUEST = select(inbox.c.principal, inbox.c.request_id, inbox.c.accepted_at).where(
    inbox.c.command_id == bindparam("id")
)
_COMMANDS = (
    select(inbox.c.command_id, inbox.c.operation, inbox.c.request_id)
    .where(
        or_(
            inbox.c.command_id == bindparam("id", type_=UUID_TYPE),
            inbox.c.request_id == bindparam("request_id"),
        )
    )
    .limit(MOST_COMMANDS)
)


@dataclass(frozen=True, slots=True)
class Request:
    """The request that asked for a wire. The key is None when the stored principal cannot be read."""

    subscription_key: str | None
    request_id: str
    accepted_at: datetime


async def page(connection: AsyncConnection, query: ListOperatorWires) -> list[WireRecord]:
    """One row more than the page has, where there is one. Called in a snapshot."""
    state = query.state
    if query.unknown:
        if state not in (None, WireState.PENDING_SUBMISSION):
            return []
        state = WireState.PENDING_SUBMISSION
    tenant = query.tenant
    if query.customer_id is not None and tenant is None:
        # A customer's id is of one tenant, with which the index finds its wires in order.
        found = await connection.execute(_TENANT, {"customer_id": query.customer_id})
        tenant = found.scalar_one_or_none()
        if tenant is None:
            return []
    start, end = period_of(query.start_date, query.end_date)
    newest = query.order is Order.NEWEST
    edge_at, edge_id = _edge_of_newest(query, end) if newest else _edge_of_oldest(query, start)
    values: dict[str, Any] = {"edge_at": edge_at, "edge_id": edge_id, "limit": query.limit + 1}
    values |= {"start": start} if newest else {"end": end}
    if query.customer_id is not None:
        pages = _PAGES_OF_CUSTOMER if state is None else _PAGES_OF_CUSTOMER_IN_STATE
        values |= {"tenant": tenant, "customer_id": query.customer_id}
    elif tenant is not None:
        pages = _PAGES_OF_TENANT if state is None else _PAGES_OF_TENANT_IN_STATE
        values["tenant"] = tenant
    else:
        pages = _PAGES if state is None else _PAGES_IN_STATE
    if state is not None:
        values |= {"state": state.value, "unknown": query.unknown}
    keys = await connection.execute(pages[query.order], values)
    return await by_ids(connection, [row.transaction_id for row in keys])


async def request_of(connection: AsyncConnection, transaction_id: UUID) -> Request | None:
    """None when the command is not kept, as in a database that was restored."""
    row = (await connection.execute(_REQUEST, {"id": transaction_id})).first()
    if row is None:
        return None
    principal = principal_of(row.principal)
    key = principal.subscription_key if principal else None
    return Request(key, row.request_id, row.accepted_at)


async def commands_of(connection: AsyncConnection, wanted: str) -> dict[UUID, tuple[str, str]]:
    """Operation and request of the command of this id and of those of this request, final or not, by their ids."""
    rows = await connection.execute(_COMMANDS, {"id": parse_id(wanted), "request_id": wanted})
    return {row.command_id: (row.operation, row.request_id) for row in rows}


def _edge_of_newest(query: ListOperatorWires, end: datetime) -> tuple[datetime, UUID]:
    """What all rows of the page are before: the end of the period, or the last row of the page before."""
    if query.place is None:
        return end, FIRST_ID
    return min((query.place.at, parse_id(query.place.id) or FIRST_ID), (end, FIRST_ID))


def _edge_of_oldest(query: ListOperatorWires, start: datetime) -> tuple[datetime, UUID]:
    """What all rows of the page are after: the moment before the period, or the last row of the page before."""
    before = start - PRECISION if start > BEGINNING_OF_TIME else start
    if query.place is None:
        return before, LAST_ID
    return max((query.place.at, parse_id(query.place.id) or LAST_ID), (before, LAST_ID))
