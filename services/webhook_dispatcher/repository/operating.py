"""Pages of subscriptions and deliveries over all tenants, for operators.

A page is read by key, in the order of an index. Ids of subscriptions and deliveries are UUIDv7, by which they are in
the order of their creation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Date,
    Select,
    and_,
    any_,
    bindparam,
    exists,
    literal_column,
    select,
    union_all,
)

from libs.contracts.ids import parse_id
from libs.contracts.operating.pages import FIRST_ID, LAST_ID, Order, Place
from libs.contracts.operating.webhooks import SubscriptionCondition
from libs.contracts.webhook_views import DeliveryFilter
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order, merged
from libs.persistence.tables import UUID_TYPE
from services.webhook_dispatcher.models import DeliveryRecord
from services.webhook_dispatcher.repository.deliveries import (
    IS_FAILING,
    OPEN,
    OVER,
    PARTS,
    days_since,
    record_of,
)
from services.webhook_dispatcher.repository.index_plans import BY_INDEX
from services.webhook_dispatcher.tables import (
    ACTIVE,
    DELETED,
    DISABLED,
    PENDING,
    UNAVAILABLE,
    attempt,
    delivery,
    endpoint,
    subscription,
)

MOST_DELIVERIES = 100
AT_ONCE = 500
MOST_LOOKED_AT = 4000
"""Subscriptions that are looked at, at most, for one page that is chosen by their deliveries or endpoints."""

_EDGE = bindparam("edge", type_=UUID_TYPE)
_OF_TENANT = subscription.c.tenant == bindparam("tenant")
_STATUSES = {
    SubscriptionCondition.ACTIVE: ACTIVE,
    SubscriptionCondition.DISABLED: DISABLED,
    SubscriptionCondition.UNAVAILABLE: UNAVAILABLE,
}
_OF_ENDPOINT: dict[SubscriptionCondition, ColumnElement[bool]] = {
    SubscriptionCondition.BREAKER_OPEN: endpoint.c.open_until.is_not(None),
    SubscriptionCondition.SLOW: and_(endpoint.c.is_slow, endpoint.c.open_until.is_(None)),
}


def _with_status(
    status: ColumnElement[Any], order: Order, *more: ColumnElement[bool]
) -> Select[Any]:
    return (
        select(subscription.c.id)
        .where(subscription.c.status == status, beyond(subscription.c.id, _EDGE, order), *more)
        .order_by(*in_order(order, subscription.c.id))
        .limit(bindparam("limit"))
    )


def _with_any_status(order: Order, *more: ColumnElement[bool]) -> Select[Any]:
    parts = (_with_status(status, order, *more) for status in _STATUSES.values())
    return merged(parts, order)


def _with_endpoint(condition: ColumnElement[bool], order: Order) -> Select[Any]:
    """Also those that are unavailable or deleted."""
    return (
        select(endpoint.c.subscription_id)
        .where(condition, beyond(endpoint.c.subscription_id, _EDGE, order))
        .order_by(*in_order(order, endpoint.c.subscription_id))
        .limit(bindparam("limit"))
    )


def _failing(order: Order) -> Select[Any]:
    """Steps from one subscription to the next in the index of failing deliveries, however many there are of each."""
    key = delivery.c.subscription_id
    first = (
        select(key)
        .where(IS_FAILING, beyond(key, _EDGE, order))
        .order_by(*in_order(order, key))
        .limit(1)
    ).subquery("first")
    steps = select(first.c.subscription_id).cte("failing", recursive=True)
    of_next = delivery.alias("following")
    following = (
        select(of_next.c.subscription_id)
        .where(
            of_next.c.state == PENDING,
            of_next.c.attempts_made > literal_column("0"),
            beyond(of_next.c.subscription_id, steps.c.subscription_id, order),
        )
        .order_by(*in_order(order, of_next.c.subscription_id))
        .limit(1)
        .scalar_subquery()
    )
    steps = steps.union_all(select(following).where(steps.c.subscription_id.is_not(None)))
    return (
        select(steps.c.subscription_id)
        .where(steps.c.subscription_id.is_not(None))
        .limit(bindparam("limit"))
    )


_SUBSCRIPTIONS = {
    (order, state, of_tenant): (
        _with_any_status(order, *more)
        if state is None
        else _with_status(_STATUSES[state], order, *more)
    )
    for order in Order
    for state in (None, *_STATUSES)
    for of_tenant in (False, True)
    for more in [[_OF_TENANT] if of_tenant else []]
}
_CANDIDATES = {(order, SubscriptionCondition.FAILING): _failing(order) for order in Order} | {
    (order, state): _with_endpoint(condition, order)
    for order in Order
    for state, condition in _OF_ENDPOINT.items()
}
_GIVEN = subscription.c.id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
# Of an unavailable one, that is what its endpoint is.
_LISTED: dict[SubscriptionCondition, ColumnElement[bool]] = {
    SubscriptionCondition.FAILING: subscription.c.status != DELETED
} | dict.fromkeys(_OF_ENDPOINT, subscription.c.status.not_in((UNAVAILABLE, DELETED)))
_HAS: Mapping[SubscriptionCondition, ColumnElement[bool]] = {
    SubscriptionCondition.FAILING: exists().where(
        delivery.c.subscription_id == subscription.c.id, IS_FAILING
    )
} | {
    state: exists().where(endpoint.c.subscription_id == subscription.c.id, condition)
    for state, condition in _OF_ENDPOINT.items()
}
_MEANT = {
    (state, of_tenant): select(subscription.c.id).where(
        _GIVEN, _LISTED[state], *([_HAS[state]] if of_tenant else [])
    )
    for state in _HAS
    for of_tenant in (False, True)
}


def _deliveries(order: Order, parts: tuple[Select[Any], ...]) -> Select[Any]:
    pages = (
        part.where(beyond(part.selected_columns[0], _EDGE, order))
        .order_by(*in_order(order, part.selected_columns[0]))
        .limit(bindparam("limit"))
        for part in parts
    )
    found = union_all(*pages).subquery("found")
    return select(found).order_by(*in_order(order, found.c.id)).limit(bindparam("limit"))


_DELIVERIES = {
    (order, status): _deliveries(order, parts) for order in Order for status, parts in PARTS.items()
}
_OF_EVENT = bindparam("event_id", type_=UUID_TYPE)
_event_deliveries = union_all(
    OPEN.where(delivery.c.event_id == _OF_EVENT, delivery.c.claim.is_(None)),
    OPEN.where(delivery.c.event_id == _OF_EVENT, delivery.c.claim.is_not(None)),
    # An attempt is of the day on which it began, by another clock than that of the event's id.
    OVER.where(attempt.c.event_id == _OF_EVENT, attempt.c.day >= bindparam("since")),
).subquery("found")
_DELIVERIES_OF_EVENT = (
    select(_event_deliveries).order_by(_event_deliveries.c.id).limit(MOST_DELIVERIES)
)
_DELIVERY_BY_ID = union_all(
    OPEN.where(delivery.c.id == bindparam("id", type_=UUID_TYPE)),
    OVER.where(
        attempt.c.delivery_id == bindparam("id", type_=UUID_TYPE),
        attempt.c.day == any_(bindparam("days", type_=ARRAY(Date))),
    ),
)


@dataclass(frozen=True, slots=True)
class FoundSubscriptions:
    """The ids of the subscriptions that follow a place.

    Args:
        looked_until: the last one that was looked at, where there may be more after it.
    """

    ids: list[UUID]
    looked_until: UUID | None = None


async def subscriptions(
    connection: AsyncConnection,
    *,
    state: SubscriptionCondition | None,
    tenant: str | None,
    order: Order,
    place: Place | None,
    limit: int,
) -> FoundSubscriptions:
    edge = _edge(place, order)
    if state is not None and state in _HAS:
        return await _looked_at(connection, state, edge, tenant, order, limit)
    values: dict[str, Any] = {"edge": edge, "limit": limit}
    if tenant is not None:
        values["tenant"] = tenant
    rows = await connection.execute(_SUBSCRIPTIONS[order, state, tenant is not None], values)
    return FoundSubscriptions(list(rows.scalars()))


async def _looked_at(
    connection: AsyncConnection,
    state: SubscriptionCondition,
    edge: UUID,
    tenant: str | None,
    order: Order,
    limit: int,
) -> FoundSubscriptions:
    """Those of all tenants are read from the index of failing deliveries, or of such endpoints. Those of one tenant are
    read from its subscriptions, of which each is looked up there: others may have many more.
    """
    of_tenant = {} if tenant is None else {"tenant": tenant}
    candidates = _CANDIDATES[order, state] if tenant is None else _SUBSCRIPTIONS[order, None, True]
    meant = _MEANT[state, tenant is not None]
    found: list[UUID] = []
    await connection.execute(BY_INDEX)
    for _ in range(MOST_LOOKED_AT // AT_ONCE):
        values = {"edge": edge, "limit": AT_ONCE, **of_tenant}
        ids = list((await connection.execute(candidates, values)).scalars())
        kept = set((await connection.execute(meant, {"ids": ids})).scalars())
        found += [each for each in ids if each in kept]
        if len(found) >= limit or len(ids) < AT_ONCE:
            return FoundSubscriptions(found[:limit])
        edge = ids[-1]
    return FoundSubscriptions(found, edge)


async def deliveries(
    connection: AsyncConnection,
    subscription_id: UUID,
    status: DeliveryFilter | None,
    *,
    order: Order,
    place: Place | None,
    limit: int,
) -> list[DeliveryRecord]:
    await connection.execute(BY_INDEX)
    rows = await connection.execute(
        _DELIVERIES[order, status],
        {"subscription_id": subscription_id, "edge": _edge(place, order), "limit": limit},
    )
    return [record_of(row) for row in rows]


async def deliveries_of_event(
    connection: AsyncConnection, day: date, event_id: UUID
) -> list[DeliveryRecord]:
    """To all subscriptions, the oldest first, `MOST_DELIVERIES` at most."""
    rows = await connection.execute(
        _DELIVERIES_OF_EVENT, {"event_id": event_id, "since": day - timedelta(days=1)}
    )
    return [record_of(row) for row in rows]


async def find_delivery(connection: AsyncConnection, delivery_id: UUID) -> DeliveryRecord | None:
    """Of any subscription."""
    try:
        made = datetime.fromtimestamp((delivery_id.int >> 80) / 1000, UTC).date()
    except (ValueError, OverflowError):
        return None
    by_id = {"id": delivery_id, "days": days_since(made)}
    row = (await connection.execute(_DELIVERY_BY_ID, by_id)).first()
    return None if row is None else record_of(row)


def _edge(place: Place | None, order: Order) -> UUID:
    newest = order is Order.NEWEST
    found = parse_id(place.id) if place is not None else None
    return found or (LAST_ID if newest else FIRST_ID)
