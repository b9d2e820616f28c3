"""Pages of customers over all tenants, for operators.

A page is read by key. Without a status, it is put together from the pages of all statuses, each of which an index has
in order: so a page of one tenant, or of all, costs as much as its rows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Interval,
    Row,
    Select,
    Text,
    any_,
    bindparam,
    case,
    collate,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import Invalid
from libs.contracts.exact_json import decode
from libs.contracts.ids import parse_id
from libs.contracts.onboarding_operations import ONBOARD_CUSTOMER
from libs.contracts.operating.customers import ListOperatorCustomers, OperatorCustomerSummary
from libs.contracts.operating.pages import FIRST_ID, Order, edge_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order, merged
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.onboarding.ids import DECISION, derived
from services.onboarding.repository.sagas import saga_ids_of
from services.onboarding.repository.step_cases import IS_REFUSED_COMPENSATION, IS_UNKNOWN
from services.onboarding.tables import customers as table
from services.onboarding.tables import inbox, saga_steps

GONE = "the last customer of the page before is gone: begin the list anew"
LAST_CHARACTER = 0x10FFFF
STUCK_AFTER = timedelta(minutes=1)
STUCK_AT_MOST = 10_000
"""Customers that are listed for each reason to be stuck, at most."""

_T = table.c
_KEY = tuple_(_T.created_at, _T.customer_id)
_EDGE = tuple_(bindparam("edge_at", type_=INSTANT), bindparam("edge_id", type_=UUID_TYPE))
_OF_TENANT = _T.tenant == bindparam("tenant")
_WITH_STATUS = _T.status == bindparam("status")
_IDS = any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
_SUMMARY: Select[Any] = select(
    _T.customer_id,
    _T.tenant,
    _T.status,
    _T.business["business_name"].astext.label("business_name"),
    _T.business["dba"].astext.label("dba"),
    _T.created_at,
    _T.updated_at,
)
_BY_IDS = _SUMMARY.where(_T.customer_id == _IDS)


def _page(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The keys of the rows that follow the edge."""
    return (
        select(_T.created_at, _T.customer_id)
        .where(beyond(_KEY, _EDGE, order), *conditions)
        .order_by(*in_order(order, _T.created_at, _T.customer_id))
        .limit(bindparam("limit"))
    )


def _page_of_all_statuses(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    # Literals, so that each part has one status for the planner.
    parts = (
        _page(order, _T.status == literal(status.value, literal_execute=True), *conditions)
        for status in CustomerStatus
    )
    return merged(parts, order)


_PAGES = {order: _page_of_all_statuses(order) for order in Order}
_PAGES_WITH_STATUS = {order: _page(order, _WITH_STATUS) for order in Order}
_PAGES_OF_TENANT = {order: _page_of_all_statuses(order, _OF_TENANT) for order in Order}
_PAGES_OF_TENANT_WITH_STATUS = {order: _page(order, _WITH_STATUS, _OF_TENANT) for order in Order}


def _page_of_stuck(order: Order, *, of_tenant: bool, with_status: bool) -> Select[Any]:
    """Of these few ids. The offset keeps the planner from walking through all customers in the order of the page."""
    found = (
        select(_T.created_at, _T.customer_id, _T.tenant, _T.status)
        .where(_T.customer_id == _IDS)
        .offset(0)
        .subquery("found")
    )
    columns = (found.c.created_at, found.c.customer_id)
    page = (
        select(*columns)
        .where(beyond(tuple_(*columns), _EDGE, order))
        .order_by(*in_order(order, *columns))
        .limit(bindparam("limit"))
    )
    if of_tenant:
        page = page.where(found.c.tenant == bindparam("tenant"))
    if with_status:
        page = page.where(found.c.status == bindparam("status"))
    return page


_PAGES_OF_STUCK = {
    (order, of_tenant, with_status): _page_of_stuck(
        order, of_tenant=of_tenant, with_status=with_status
    )
    for order in Order
    for of_tenant in (False, True)
    for with_status in (False, True)
}

# As in the index, with the key as a literal.
_NAME = collate(func.lower(_T.business.op("->>")(literal_column("'business_name'"))), "C")
_END = func.lower(bindparam("name", type_=Text), type_=Text) + func.chr(LAST_CHARACTER, type_=Text)
_NAME_OF = select(_NAME).where(_T.customer_id == bindparam("customer_id"))


def _page_by_name(*conditions: ColumnElement[bool]) -> Select[Any]:
    """The edge of the first page is the beginning of the names itself: a scan begins there."""
    edge_name = func.lower(bindparam("edge_name", type_=Text))
    edge = tuple_(collate(edge_name, "C"), bindparam("edge_id", type_=UUID_TYPE))
    return (
        select(_T.created_at, _T.customer_id)
        .where(
            tuple_(_NAME, _T.customer_id) > edge,
            _NAME < _END,
            *conditions,
        )
        .order_by(_NAME, _T.customer_id)
        .limit(bindparam("limit"))
    )


# By whether tenant and status are given. Both are in the index: what they leave out is not read.
_PAGES_BY_NAME = {
    (False, False): _page_by_name(),
    (True, False): _page_by_name(_OF_TENANT),
    (False, True): _page_by_name(_WITH_STATUS),
    (True, True): _page_by_name(_OF_TENANT, _WITH_STATUS),
}
_STUCK_STEPS = (
    select(saga_steps.c.customer_id)
    .distinct()
    .where(
        IS_UNKNOWN,
        saga_steps.c.first_sent_at < func.clock_timestamp() - literal(STUCK_AFTER, Interval),
    )
    .limit(STUCK_AT_MOST)
)
_NOT_SETTLED = (
    select(saga_steps.c.customer_id).distinct().where(IS_REFUSED_COMPENSATION).limit(STUCK_AT_MOST)
)
_PARKED = (
    select(
        inbox.c.command_id,
        inbox.c.message_id,
        inbox.c.operation,
        inbox.c.ordering_key,
        case((inbox.c.operation == DECISION, inbox.c.body)).label("decision"),
    )
    .where(inbox.c.finished_at.is_(None), inbox.c.parked_at.is_not(None))
    .limit(STUCK_AT_MOST)
)


async def page(
    connection: AsyncConnection, query: ListOperatorCustomers
) -> list[OperatorCustomerSummary]:
    """One row more than the page has, where there is one. Called in a snapshot.

    Raises Invalid: the last row of the page before is gone, in a list by name.
    """
    if query.name is not None:
        ids = await _ids_by_name(connection, query, query.name)
    else:
        ids = await _ids_by_time(connection, query)
    rows = await connection.execute(_BY_IDS, {"ids": ids})
    found = {row.customer_id: _summary(row) for row in rows}
    return [found[each] for each in ids]


async def _ids_by_time(connection: AsyncConnection, query: ListOperatorCustomers) -> list[UUID]:
    edge_at, edge_id = edge_of(query.place, query.order)
    values: dict[str, Any] = {"edge_at": edge_at, "edge_id": edge_id, "limit": query.limit + 1}
    if query.tenant is not None:
        values["tenant"] = query.tenant
    if query.status is not None:
        values["status"] = query.status.value
    if query.stuck:
        values["ids"] = list(await _stuck(connection))
        statement = _PAGES_OF_STUCK[query.order, query.tenant is not None, query.status is not None]
    elif query.tenant is not None:
        statement = (_PAGES_OF_TENANT_WITH_STATUS if query.status else _PAGES_OF_TENANT)[
            query.order
        ]
    else:
        statement = (_PAGES_WITH_STATUS if query.status else _PAGES)[query.order]
    return [row.customer_id for row in await connection.execute(statement, values)]


async def _ids_by_name(
    connection: AsyncConnection, query: ListOperatorCustomers, name: str
) -> list[UUID]:
    values: dict[str, Any] = {"name": name, "edge_name": name, "edge_id": FIRST_ID}
    values["limit"] = query.limit + 1
    if query.place is not None:
        values["edge_id"] = parse_id(query.place.id) or FIRST_ID
        edge = await connection.execute(_NAME_OF, {"customer_id": values["edge_id"]})
        values["edge_name"] = edge.scalar_one_or_none()
        if values["edge_name"] is None:
            raise Invalid([{"loc": ["query", "after"], "msg": GONE, "type": "value_error"}])
    if query.tenant is not None:
        values["tenant"] = query.tenant
    if query.status is not None:
        values["status"] = query.status.value
    statement = _PAGES_BY_NAME[query.tenant is not None, query.status is not None]
    return [row.customer_id for row in await connection.execute(statement, values)]


async def _stuck(connection: AsyncConnection) -> set[UUID]:
    """Customers with a step that is of unknown outcome for a minute, a refused compensation or a parked command."""
    found = set((await connection.execute(_STUCK_STEPS)).scalars())
    found |= set((await connection.execute(_NOT_SETTLED)).scalars())
    for row in await connection.execute(_PARKED):
        if row.operation == ONBOARD_CUSTOMER.name:
            sagas = saga_ids_of(row.command_id, row.message_id)
            found |= {derived(saga, "customer") for saga in sagas}
        elif row.ordering_key is not None:
            customer_id = parse_id(row.ordering_key.rpartition("/")[2])
            found |= {customer_id} if customer_id else set()
        elif row.decision:  # about a customer that is pending: it has no order
            customer_id = parse_id(decode(row.decision)["customer_id"])
            found |= {customer_id} if customer_id else set()
    return found


def _summary(row: Row[Any]) -> OperatorCustomerSummary:
    return OperatorCustomerSummary(
        customer_id=str(row.customer_id),
        tenant=row.tenant,
        status=CustomerStatus(row.status),
        business_name=row.business_name,
        dba=row.dba,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
