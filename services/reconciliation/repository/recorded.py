"""Recorded differences as operators read them: one, or a page in the order in which they were first seen.

A page of differences in any state is put together from the pages of all states, each of which an index has in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    any_,
    bindparam,
    cast,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.exact_json import decode
from libs.contracts.operating.differences import DifferenceState, ListOperatorDifferences
from libs.contracts.operating.pages import Order, edge_of
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order, merged
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.reconciliation.models import Side
from services.reconciliation.repository.differences import read_side
from services.reconciliation.tables import difference as table

_COLUMNS = select(
    table.c.difference_id,
    table.c.comparison,
    table.c.kind,
    table.c.subject,
    cast(table.c.ids, Text).label("ids"),
    cast(table.c.ours, Text).label("ours"),
    cast(table.c.theirs, Text).label("theirs"),
    table.c.first_seen,
    table.c.last_seen,
    table.c.closed_at,
    table.c.closed_as,
    table.c.reason,
    table.c.closed_by,
    table.c.revision,
)
_FIND = _COLUMNS.where(table.c.difference_id == bindparam("id"))
_BY_IDS = _COLUMNS.where(table.c.difference_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))
_EDGE = tuple_(bindparam("edge_at", type_=INSTANT), bindparam("edge_id", type_=UUID_TYPE))
# Written out, as they stand in the indexes.
_IN_STATE: dict[DifferenceState, ColumnElement[bool]] = {
    DifferenceState.OPEN: table.c.closed_as.is_(None),
    DifferenceState.EXPLAINED: table.c.closed_as == literal_column("'explained'"),
    DifferenceState.DISAPPEARED: table.c.closed_as == literal_column("'disappeared'"),
}
_OF_KIND = table.c.kind == bindparam("kind")
_OF_TENANT = literal_column("(ids ->> 'tenant')", Text) == bindparam("tenant", type_=Text)


def _page(order: Order, state: DifferenceState, *conditions: ColumnElement[bool]) -> Select[Any]:
    key = tuple_(table.c.first_seen, table.c.difference_id)
    # Without its first column, PostgreSQL would not see that an index with `closed_as IS NULL` is in this order.
    columns = (table.c.closed_as, table.c.first_seen, table.c.difference_id)
    return (
        select(table.c.first_seen, table.c.difference_id)
        .where(_IN_STATE[state], beyond(key, _EDGE, order), *conditions)
        .order_by(*in_order(order, *columns))
        .limit(bindparam("limit"))
    )


def _page_of_all_states(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    return merged((_page(order, state, *conditions) for state in DifferenceState), order)


_PAGES = {
    (order, state, of_kind, of_tenant): (
        _page_of_all_states(order, *conditions)
        if state is None
        else _page(order, state, *conditions)
    )
    for order in Order
    for state in (None, *DifferenceState)
    for of_kind in (False, True)
    for of_tenant in (False, True)
    for conditions in [([_OF_KIND] if of_kind else []) + ([_OF_TENANT] if of_tenant else [])]
}


@dataclass(frozen=True, slots=True)
class RecordedDifference:
    """A row, as operators see it.

    Args:
        revision: 1, and one more each time that a run found the open row otherwise.
    """

    difference_id: UUID
    comparison: str
    kind: str
    subject: str
    ids: Mapping[str, str]
    ours: Side
    theirs: Side
    first_seen: datetime
    last_seen: datetime
    closed_at: datetime | None
    closed_as: Literal["explained", "disappeared"] | None
    reason: str | None
    closed_by: str | None
    revision: int


async def find(connection: AsyncConnection, difference_id: UUID) -> RecordedDifference | None:
    row = (await connection.execute(_FIND, {"id": difference_id})).first()
    return None if row is None else _recorded(row)


async def page(
    connection: AsyncConnection, query: ListOperatorDifferences
) -> list[RecordedDifference]:
    """One row more than the page has, where there is one. Called in a snapshot."""
    edge_at, edge_id = edge_of(query.place, query.order)
    values: dict[str, Any] = {"edge_at": edge_at, "edge_id": edge_id, "limit": query.limit + 1}
    if query.kind is not None:
        values["kind"] = query.kind
    if query.tenant is not None:
        values["tenant"] = query.tenant
    statement = _PAGES[query.order, query.state, query.kind is not None, query.tenant is not None]
    ids = [row.difference_id for row in await connection.execute(statement, values)]
    rows = await connection.execute(_BY_IDS, {"ids": ids})
    found = {row.difference_id: _recorded(row) for row in rows}
    return [found[each] for each in ids]


def _recorded(row: Row[Any]) -> RecordedDifference:
    return RecordedDifference(
        difference_id=row.difference_id,
        comparison=row.comparison,
        kind=row.kind,
        subject=row.subject,
        ids=decode(row.ids),
        ours=read_side(row.ours),
        theirs=read_side(row.theirs),
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        closed_at=row.closed_at,
        closed_as=row.closed_as,
        reason=row.reason,
        closed_by=row.closed_by,
        revision=row.revision,
    )
