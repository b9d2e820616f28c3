"""Pages of events over all tenants, for operators: by key, in the order of their positions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    true,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.operating.pages import Order, Place
from services.webhook_dispatcher.models import DeliveryRecord
from services.webhook_dispatcher.repository.events import parse_event_id
from services.webhook_dispatcher.repository.operating import BY_INDEX, beyond, sorted_by
from services.webhook_dispatcher.tables import event

LAST_POSITION = 2**63 - 1

_EVENT = select(
    event.c.position,
    event.c.id,
    event.c.tenant,
    event.c.customer_id,
    event.c.type,
    event.c.resource_id,
    event.c.sequence,
    event.c.recorded_at,
)
_EVENT_BY_ID = _EVENT.add_columns(event.c.body).where(
    event.c.day == bindparam("day"), event.c.id == bindparam("id")
)
_BODY = select(event.c.body).where(event.c.day == bindparam("day"), event.c.id == bindparam("id"))
_WANTED = (
    func.unnest(bindparam("types", type_=ARRAY(Text))).table_valued("type").render_derived("wanted")
)
_EVENT_OF_TENANT = event.c.tenant == bindparam("tenant")
_EVENT_OF_RESOURCE = event.c.resource_id == bindparam("resource_id")


def _events(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        _EVENT.where(beyond(event.c.position, bindparam("edge"), order), *conditions)
        .order_by(sorted_by(event.c.position, order))
        .limit(bindparam("limit"))
    )


def _events_of_types(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The next of each type by an index that has them in order: a rare type costs no walk over the others."""
    if conditions:
        found = _events(order, *conditions, event.c.type == _WANTED.c.type).lateral("found")
    else:
        # Between two rows of the index by type: with an equation, PostgreSQL may walk the index of all types instead.
        key, newest = tuple_(event.c.type, event.c.position), order is Order.NEWEST
        edge = tuple_(_WANTED.c.type, bindparam("edge", type_=BigInteger))
        end = tuple_(_WANTED.c.type, literal_column("-1" if newest else str(LAST_POSITION)))
        found = (
            _EVENT.where(key < edge if newest else key > edge, key > end if newest else key < end)
            .order_by(sorted_by(event.c.type, order), sorted_by(event.c.position, order))
            .limit(bindparam("limit"))
            .lateral("found")
        )
    return (
        select(found)
        .select_from(_WANTED.join(found, true()))
        .order_by(sorted_by(found.c.position, order))
        .limit(bindparam("limit"))
    )


_EVENTS = {
    (order, of_types, of_tenant, of_resource): (
        _events_of_types(order, *conditions) if of_types else _events(order, *conditions)
    )
    for order in Order
    for of_types in (False, True)
    for of_tenant in (False, True)
    for of_resource in (False, True)
    for conditions in [
        ([_EVENT_OF_TENANT] if of_tenant else []) + ([_EVENT_OF_RESOURCE] if of_resource else [])
    ]
}


@dataclass(frozen=True, slots=True)
class EventRecord:
    position: int
    id: UUID
    tenant: str
    customer_id: str | None
    type: str
    resource_id: str
    sequence: int
    recorded_at: datetime
    body: bytes | None = field(default=None, repr=False)


async def events(
    connection: AsyncConnection,
    *,
    tenant: str | None,
    types: Collection[str] | None,
    resource_id: str | None,
    order: Order,
    place: Place | None,
    limit: int,
) -> list[EventRecord]:
    newest = order is Order.NEWEST
    edge = LAST_POSITION if newest else 0
    if place is not None and place.id.isdecimal() and len(place.id) < len(str(LAST_POSITION)):
        edge = int(place.id)
    values: dict[str, Any] = {"edge": edge, "limit": limit}
    if tenant is not None:
        values["tenant"] = tenant
    if resource_id is not None:
        values["resource_id"] = resource_id
    if types is not None:
        values["types"] = sorted(types)
    statement = _EVENTS[order, types is not None, tenant is not None, resource_id is not None]
    await connection.execute(BY_INDEX)
    return [EventRecord(*row) for row in await connection.execute(statement, values)]


async def find_event(connection: AsyncConnection, event_id: str) -> EventRecord | None:
    parsed = parse_event_id(event_id)
    if parsed is None:
        return None
    row = (await connection.execute(_EVENT_BY_ID, {"day": parsed[0], "id": parsed[1]})).first()
    return None if row is None else EventRecord(*row)


async def body_of(connection: AsyncConnection, found: DeliveryRecord) -> bytes | None:
    """Of the delivery's event; None when that is kept no longer."""
    rows = await connection.execute(_BODY, {"day": found.event_day, "id": found.event_id})
    body: bytes | None = rows.scalar_one_or_none()
    return body
