"""Stray deliveries: those in a state that the status of their subscription does not allow.

| the subscription is | strays | they are |
|---|---|---|
| active | held | made pending, due now, with a retry schedule that begins anew |
| disabled, unavailable | pending | held |
| deleted | all | removed |

They may be millions, so they are changed in batches, each in a transaction in which the subscription keeps its status.

Those of a subscription that was unavailable and became active are no strays: they stay held until `recover`, or until
it is disabled and made active again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    Update,
    bindparam,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    true,
    union_all,
    update,
)

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.tables import INSTANT
from services.webhook_dispatcher.repository.index_plans import BY_INDEX
from services.webhook_dispatcher.tables import (
    DELETED,
    DISABLED,
    HELD,
    PENDING,
    UNAVAILABLE,
    delivery,
    subscription,
)

Status = Literal["active", "disabled", "unavailable", "deleted"]


class _Rule(NamedTuple):
    """Of one kind of strays, found by an index that has no others: those that were changed are not walked over again.

    Both statements run with `BY_INDEX`, in an order that this index alone has. The planner would choose another index
    where this one has more pages than rows, as after a large backlog, or read the table from its beginning where strays
    are a good part of it.
    """

    any_left: Select[Any]
    change: Update | Delete


def _rule(
    change: Update | Delete, *is_stray: ColumnElement[bool], in_order_of: Sequence[Any]
) -> _Rule:
    strays = select(delivery.c.id).where(_OF_ONE, *is_stray).order_by(*in_order_of)
    # Locked rows are passed over, since waiting for them could be a deadlock: statements that wait for several rows
    # lock them in order of their ids, and this one finds its rows in another.
    some = strays.limit(bindparam("most")).with_for_update(skip_locked=True)
    return _Rule(strays.limit(1), change.where(is_chosen(delivery.c.id, some)))


# Of one subscription. With equality, `delivery_of_subscription`, read backwards, would have the order of
# `delivery_held`.
_OF_ONE = delivery.c.subscription_id.between(
    bindparam("of_subscription"), bindparam("of_subscription")
)
_HOLDING = update(delivery).values(state="held", held_at=func.clock_timestamp())
_HOLD = (
    _rule(
        _HOLDING,
        delivery.c.state == PENDING,
        delivery.c.claim.is_(None),
        in_order_of=(delivery.c.subscription_id, delivery.c.due_at),
    ),
    _rule(
        _HOLDING,
        delivery.c.state == PENDING,
        delivery.c.claim.is_not(None),
        in_order_of=(delivery.c.lease_until,),
    ),
)
_RELEASING = update(delivery).values(
    state="pending",
    held_at=null(),
    due_at=func.clock_timestamp(),
    released_at=func.clock_timestamp(),
    schedule_from=delivery.c.attempts_made,
)
_RULES: dict[Status, tuple[_Rule, ...]] = {
    "active": (
        _rule(
            _RELEASING,
            delivery.c.state == HELD,
            in_order_of=(delivery.c.subscription_id, delivery.c.id),
        ),
    ),
    "disabled": _HOLD,
    "unavailable": _HOLD,
    "deleted": (
        _rule(delete(delivery), in_order_of=(delivery.c.subscription_id, delivery.c.id.desc())),
    ),
}
_KEEP_STATUS = (
    select(subscription.c.id)
    .where(
        subscription.c.id == bindparam("id"),
        subscription.c.status == bindparam("status"),
        func.coalesce(
            subscription.c.unavailable_at <= bindparam("active_since", type_=INSTANT), true()
        ),
    )
    .with_for_update(read=True)
)
_OF_SUBSCRIPTION = delivery.c.subscription_id == subscription.c.id
# Those in flight of a disabled or unavailable subscription are not looked for, since only the others have an index:
# they end soon, or are found the next time.
_first_pending = (
    select(delivery.c.id)
    .where(_OF_SUBSCRIPTION, delivery.c.state == PENDING, delivery.c.claim.is_(None))
    .order_by(delivery.c.due_at)
    .limit(1)
    .lateral("first_pending")
)
_SUBSCRIPTIONS = union_all(
    select(subscription.c.id, subscription.c.status)
    .select_from(subscription.join(_first_pending, true()))
    .where(or_(subscription.c.status == UNAVAILABLE, subscription.c.status == DISABLED)),
    select(subscription.c.id, subscription.c.status).where(
        subscription.c.status == DELETED, exists().where(_OF_SUBSCRIPTION)
    ),
)


async def change(
    connection: AsyncConnection,
    subscription_id: UUID,
    status: Status,
    most: int,
    active_since: datetime | None = None,
) -> int | None:
    """Change up to `most` strays, and keep the status of the subscription until the transaction ends. Returns how many
    were changed, None when the subscription has another status, or was unavailable after `active_since`.
    """
    kept = await connection.execute(
        _KEEP_STATUS, {"id": subscription_id, "status": status, "active_since": active_since}
    )
    if kept.first() is None:
        return None
    await connection.execute(BY_INDEX)
    changed = 0
    for rule in _RULES[status]:
        done = await connection.execute(
            rule.change, {"of_subscription": subscription_id, "most": most - changed}
        )
        changed += done.rowcount
    return changed


async def any_left(connection: AsyncConnection, subscription_id: UUID, status: Status) -> bool:
    """Whether there are strays, locked ones included."""
    for rule in _RULES[status]:
        found = await connection.execute(rule.any_left, {"of_subscription": subscription_id})
        if found.first() is not None:
            return True
    return False


async def subscriptions(connection: AsyncConnection) -> list[tuple[UUID, Status]]:
    """Disabled, unavailable and deleted subscriptions that have strays, as after a process died while changing them."""
    await connection.execute(BY_INDEX)
    found = await connection.execute(_SUBSCRIPTIONS)
    return [(row.id, row.status) for row in found]
