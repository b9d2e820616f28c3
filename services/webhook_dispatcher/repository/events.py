"""Events as they were recorded, scoped by the principal: a customer sees its own, a partner those of all its customers.

Positions are in commit order: a reader that asks for those after the last one it saw misses none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

from libs.contracts.ids import parse_id
from libs.contracts.principal import Principal
from libs.persistence.async_engine import AsyncConnection
from services.webhook_dispatcher.repository.event_ranges import in_range
from services.webhook_dispatcher.repository.index_plans import BY_INDEX
from services.webhook_dispatcher.tables import event as table

EVENT_PREFIX = "evt_"

_EVENT = select(table.c.position, table.c.body)
_OF_PARTNER: dict[ColumnElement[Any], ColumnElement[Any]] = {
    table.c.tenant: bindparam("tenant", type_=Text)
}
_OF_CUSTOMER = {**_OF_PARTNER, table.c.customer_id: bindparam("customer_id", type_=Text)}
_SEEN_BY_CUSTOMER = and_(*(column == value for column, value in _OF_CUSTOMER.items()))
# An event about a customer's subscription is that customer's alone: the URL in it may contain a secret. Recording an
# event goes by the same rule (`repository/recording.py`).
_NOT_OF_A_CUSTOMER_ALONE = or_(
    table.c.customer_id.is_(None),
    func.split_part(table.c.type, ".", 1) != "webhook_subscription",
)
_SEEN_BY_PARTNER = and_(table.c.tenant == bindparam("tenant"), _NOT_OF_A_CUSTOMER_ALONE)
_WANTED = (
    func.unnest(bindparam("types", type_=ARRAY(Text))).table_valued("type").render_derived("wanted")
)


def _finding(is_seen: ColumnElement[bool]) -> Select[Any]:
    return _EVENT.where(table.c.day == bindparam("day"), table.c.id == bindparam("id"), is_seen)


def _following_of_types(
    of: Mapping[ColumnElement[Any], ColumnElement[Any]], *conditions: ColumnElement[bool]
) -> Select[Any]:
    """The next of each type by an index that has them in order: a rare type costs no walk over the others."""
    of_type = in_range(_EVENT.where(*conditions), {**of, table.c.type: _WANTED.c.type}).lateral(
        "found"
    )
    return (
        select(of_type.c.position, of_type.c.body)
        .select_from(_WANTED.join(of_type, true()))
        .order_by(of_type.c.position)
        .limit(bindparam("limit"))
    )


_FIND_FOR_PARTNER = _finding(_SEEN_BY_PARTNER)
_FIND_FOR_CUSTOMER = _finding(_SEEN_BY_CUSTOMER)
_FOLLOWING_FOR_PARTNER = in_range(_EVENT.where(_NOT_OF_A_CUSTOMER_ALONE), _OF_PARTNER)
_FOLLOWING_FOR_CUSTOMER = in_range(_EVENT, _OF_CUSTOMER)
_FOLLOWING_OF_TYPES_FOR_PARTNER = _following_of_types(_OF_PARTNER, _NOT_OF_A_CUSTOMER_ALONE)
_FOLLOWING_OF_TYPES_FOR_CUSTOMER = _following_of_types(_OF_CUSTOMER)


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
    values = {**_viewer(principal), "edge": after, "limit": limit}
    await connection.execute(BY_INDEX)
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
