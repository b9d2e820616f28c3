"""Pages of events over all tenants, for operators: by key, in the order of their positions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    any_,
    bindparam,
    func,
    select,
    true,
)

from libs.contracts.operating.pages import Order, Place
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import in_order
from services.webhook_dispatcher.models import DeliveryRecord
from services.webhook_dispatcher.repository.event_ranges import (
    FIRST_POSITION,
    LAST_POSITION,
    in_range,
)
from services.webhook_dispatcher.repository.events import parse_event_id
from services.webhook_dispatcher.repository.index_plans import BY_INDEX
from services.webhook_dispatcher.tables import event

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
_TYPES = bindparam("types", type_=ARRAY(Text))
_WANTED = func.unnest(_TYPES).table_valued("type").render_derived("wanted")
_OF_TENANT: dict[ColumnElement[Any], ColumnElement[Any]] = {
    event.c.tenant: bindparam("tenant", type_=Text)
}
_OF_TYPE: dict[ColumnElement[Any], ColumnElement[Any]] = {event.c.type: _WANTED.c.type}
_OF_RESOURCE: dict[ColumnElement[Any], ColumnElement[Any]] = {
    event.c.resource_id: bindparam("resource_id", type_=Text)
}


def _events(order: Order, *, of_types: bool, of_tenant: bool, of_resource: bool) -> Select[Any]:
    if of_resource:  # which has few of them
        rows = _EVENT.where(event.c.type == any_(_TYPES)) if of_types else _EVENT
        if of_tenant:
            rows = rows.where(*(column == value for column, value in _OF_TENANT.items()))
        return in_range(rows, _OF_RESOURCE, order)
    of = _OF_TENANT if of_tenant else {}
    if not of_types:
        return in_range(_EVENT, of, order)
    # The next of each type by an index that has them in order: a rare type costs no walk over the others.
    found = in_range(_EVENT, {**of, **_OF_TYPE}, order).lateral("found")
    return (
        select(found)
        .select_from(_WANTED.join(found, true()))
        .order_by(*in_order(order, found.c.position))
        .limit(bindparam("limit"))
    )


_EVENTS = {
    (order, of_types, of_tenant, of_resource): _events(
        order, of_types=of_types, of_tenant=of_tenant, of_resource=of_resource
    )
    for order in Order
    for of_types in (False, True)
    for of_tenant in (False, True)
    for of_resource in (False, True)
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
    edge = LAST_POSITION if newest else FIRST_POSITION
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
