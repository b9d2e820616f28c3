"""Events as they were recorded, scoped by the principal: a customer sees its own, a partner those of all its customers.

Positions are in commit order: a reader that asks for those after the last one it saw misses none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from services.webhook_dispatcher.tables import event as table

EVENT_PREFIX = "evt_"

_OF_TENANT = table.c.tenant == bindparam("tenant")
_SEEN_BY_CUSTOMER = and_(_OF_TENANT, table.c.customer_id == bindparam("customer_id"))
# An event about a customer's subscription is that customer's alone: the URL in it may contain a secret. Recording an
# event goes by the same rule (`repository/recording.py`).
_SEEN_BY_PARTNER = and_(
    _OF_TENANT,
    or_(
        table.c.customer_id.is_(None),
        func.split_part(table.c.type, ".", 1) != "webhook_subscription",
    ),
)
_WANTED = (
    func.unnest(bindparam("types", type_=ARRAY(Text))).table_valued("type").render_derived("wanted")
)


def _finding(is_seen: ColumnElement[bool]) -> Select[Any]:
    return select(table.c.position, table.c.body).where(
        table.c.day == bindparam("day"), table.c.id == bindparam("id"), is_seen
    )


def _following(is_seen: ColumnElement[bool]) -> Select[Any]:
    return (
        select(table.c.position, table.c.body)
        .where(is_seen, table.c.position > bindparam("after"))
        .order_by(table.c.position)
        .limit(bindparam("limit"))
    )


def _following_of_types(is_seen: ColumnElement[bool]) -> Select[Any]:
    """The next of each type by an index that has them in order: a rare type costs no walk over the others."""
    of_type = _following(is_seen).where(table.c.type == _WANTED.c.type).lateral("found")
    return (
        select(of_type.c.position, of_type.c.body)
        .select_from(_WANTED.join(of_type, true()))
        .order_by(of_type.c.position)
        .limit(bindparam("limit"))
    )


_FIND_FOR_PARTNER = _finding(_SEEN_BY_PARTNER)
_FIND_FOR_CUSTOMER = _finding(_SEEN_BY_CUSTOMER)
_FOLLOWING_FOR_PARTNER = _following(_SEEN_BY_PARTNER)
_FOLLOWING_FOR_CUSTOMER = _following(_SEEN_BY_CUSTOMER)
_FOLLOWING_OF_TYPES_FOR_PARTNER = _following_of_types(_SEEN_BY_PARTNER)
_FOLLOWING_OF_TYPES_FOR_CUSTOMER = _following_of_types(_SEEN_BY_CUSTOMER)
# Planning a page anew, over the partitions of all days, costs PostgreSQL as much as reading it.
_PLAN_ONCE = select(func.set_config("plan_cache_mode", "force_generic_plan", true()))


@dataclass(frozen=True, slots=True)
class Recorded:
    position: int
    body: bytes = field(repr=False)


def parse_event_id(text: str) -> tuple[date, UUID] | None:
    """The UTC day of its time and the UUID of `evt_<uuidv7>`; None for anything else."""
    event_id = parse_id(text.removeprefix(EVENT_PREFIX)) if text.startswith(EVENT_PREFIX) else None
    if event_id is None or event_id.version != 7:
        return None
    try:
        return datetime.fromtimestamp((event_id.int >> 80) / 1000, UTC).date(), event_id
    except (ValueError, OverflowError):
        return None


async def find(connection: AsyncConnection, principal: Principal, event_id: str) -> Recorded | None:
    """The event, when it is within the retention and the principal may see it."""
    parsed = parse_event_id(event_id)
    if parsed is None:
        return None
    day, uuid = parsed
    found = await connection.execute(
        _FIND_FOR_CUSTOMER if principal.customer_id else _FIND_FOR_PARTNER,
        {**_viewer(principal), "day": day, "id": uuid},
    )
    row = found.first()
    return None if row is None else Recorded(*row)


async def following(
    connection: AsyncConnection,
    principal: Principal,
    *,
    after: int,
    types: Collection[str] | None,
    limit: int,
) -> list[bytes]:
    """The bodies of the next events after a position, the oldest first.

    Args:
        types: only of these types; None for all.
    """
    values = {**_viewer(principal), "after": after, "limit": limit}
    await connection.execute(_PLAN_ONCE)
    if types is None:
        by_customer, by_partner = _FOLLOWING_FOR_CUSTOMER, _FOLLOWING_FOR_PARTNER
    else:
        by_customer, by_partner = (
            _FOLLOWING_OF_TYPES_FOR_CUSTOMER,
            _FOLLOWING_OF_TYPES_FOR_PARTNER,
        )
        values["types"] = sorted(types)
    rows = await connection.execute(by_customer if principal.customer_id else by_partner, values)
    return [row.body for row in rows]


def _viewer(principal: Principal) -> dict[str, Any]:
    return {"tenant": principal.tenant, "customer_id": principal.customer_id}
