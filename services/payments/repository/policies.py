"""Wire policies, and what of their daily limits is used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    any_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from libs.contracts.bank_days import BANK_ZONE
from libs.contracts.operating.pages import Order, edge_of
from libs.contracts.operating.wire_policies import ListOperatorWirePolicies
from libs.contracts.wires import WireState
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.keyset import beyond, in_order
from libs.persistence.tables import INSTANT, UUID_TYPE
from services.payments.policies import Policy, Usage
from services.payments.repository.lists import midnight
from services.payments.tables import inbox, wires
from services.payments.tables import wire_policy as table

_NOT_COUNTED = (WireState.REJECTED, WireState.CANCELED)
_COUNTED = [state.value for state in WireState if state not in _NOT_COUNTED]

_FIND = select(table).where(
    table.c.tenant == bindparam("tenant"), table.c.customer_id == bindparam("customer_id")
)
_new = insert(table)
_SET = _new.on_conflict_do_update(
    index_elements=[table.c.tenant, table.c.customer_id],
    set_={column.name: _new.excluded[column.name] for column in table.c if not column.primary_key},
    where=or_(
        table.c.command_sequence.is_(None),  # an earlier release set it
        table.c.command_sequence <= _new.excluded.command_sequence,
    ),
)
_FIND_SET_SINCE = _FIND.where(table.c.command_sequence >= bindparam("sequence"))
_SEQUENCE = select(inbox.c.sequence).where(inbox.c.command_id == bindparam("command_id"))
_LOCK_LIMITS = select(
    func.pg_advisory_xact_lock(
        func.hashtext("wire_limits"), func.hashtext(bindparam("key", type_=Text))
    ),
    ENDED_WHEN_IDLE,
)
_counted = (
    wires.c.tenant == bindparam("tenant"),
    wires.c.customer_id == bindparam("customer_id"),
    wires.c.state == any_(bindparam("states", type_=ARRAY(Text))),
    wires.c.transaction_id != bindparam("beside", type_=UUID_TYPE),
)
_start, _end = bindparam("start", type_=INSTANT), bindparam("end", type_=INSTANT)
_of_day = union_all(
    select(wires.c.amount).where(
        *_counted,
        wires.c.created_at >= _start,
        wires.c.created_at < _end,
        wires.c.approved_at.is_(None),
    ),
    select(wires.c.amount).where(
        *_counted, wires.c.approved_at >= _start, wires.c.approved_at < _end
    ),
).subquery("of_day")
_USAGE = select(
    func.coalesce(func.sum(_of_day.c.amount), literal_column("0")), func.count()
).select_from(_of_day)


_SHOWN = [column for column in table.c if column is not table.c.command_sequence]
_KEY = tuple_(table.c.updated_at, table.c.customer_id)
_EDGE = tuple_(bindparam("edge_at", type_=INSTANT), bindparam("edge_id", type_=Text))
_OF_TENANT_IF_WANTED = or_(
    bindparam("tenant", type_=Text).is_(None), table.c.tenant == bindparam("tenant", type_=Text)
)
_OF_CUSTOMER = table.c.customer_id == bindparam("customer_id")


def _page(order: Order, *conditions: ColumnElement[bool]) -> Select[Any]:
    keys = (table.c.updated_at, table.c.customer_id)
    return (
        select(*_SHOWN)
        .where(beyond(_KEY, _EDGE, order), _OF_TENANT_IF_WANTED, *conditions)
        .order_by(*in_order(order, *keys))
        .limit(bindparam("limit"))
    )


_PAGES = {order: _page(order) for order in Order}
_PAGES_OF_CUSTOMER = {order: _page(order, _OF_CUSTOMER) for order in Order}


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    policy: Policy
    updated_at: datetime


async def find(connection: AsyncConnection, tenant: str, customer_id: str) -> StoredPolicy | None:
    """What the customer's partner has set."""
    rows = await connection.execute(_FIND, {"tenant": tenant, "customer_id": customer_id})
    return _stored(rows.one_or_none())


async def find_set_since(
    connection: AsyncConnection, tenant: str, customer_id: str, sequence: int
) -> StoredPolicy | None:
    """The customer's policy, if the command of this sequence has set it, or one that was accepted later."""
    rows = await connection.execute(
        _FIND_SET_SINCE, {"tenant": tenant, "customer_id": customer_id, "sequence": sequence}
    )
    return _stored(rows.one_or_none())


def _stored(row: Row[Any] | None) -> StoredPolicy | None:
    if row is None:
        return None
    values: dict[str, Any] = {name: getattr(row, name) for name in Policy().values()}
    return StoredPolicy(Policy(**values), row.updated_at)


async def sequence_of(connection: AsyncConnection, command_id: UUID) -> int:
    """The place of a command among those that were accepted."""
    return int((await connection.execute(_SEQUENCE, {"command_id": command_id})).scalar_one())


async def set_policy(
    connection: AsyncConnection, tenant: str, customer_id: str, stored: StoredPolicy, sequence: int
) -> StoredPolicy:
    """Set the policy, unless a command that was accepted later has set one: a command that is driven again must not
    loosen what its partner has tightened since.

    Args:
        sequence: of the command, by `sequence_of`.

    Returns:
        What is set afterwards.
    """
    done = await connection.execute(
        _SET,
        {
            "tenant": tenant,
            "customer_id": customer_id,
            **stored.policy.values(),
            "updated_at": stored.updated_at,
            "command_sequence": sequence,
        },
    )
    if done.rowcount == 1:
        return stored
    later = await find(connection, tenant, customer_id)
    assert later is not None, "policies are not removed"
    return later


async def lock_limits(connection: AsyncConnection, tenant: str, customer_id: str) -> None:
    """Until the transaction ends, no other one decides on a wire of the customer by its limits."""
    await connection.execute(_LOCK_LIMITS, {"key": f"{tenant}/{customer_id}"})


async def usage(
    connection: AsyncConnection, tenant: str, customer_id: str, now: datetime, *, beside: UUID
) -> Usage:
    """Of the day at the bank, beside the wire that is decided on, under the lock of `lock_limits`.

    A wire counts on the day on which it was asked for, one that was approved on the day of that instead. Wires that
    were rejected or canceled do not count, those that wait for approval do.
    """
    day = now.astimezone(BANK_ZONE).date()
    rows = await connection.execute(
        _USAGE,
        {
            "tenant": tenant,
            "customer_id": customer_id,
            "states": _COUNTED,
            "beside": beside,
            "start": midnight(day),
            "end": midnight(day + timedelta(days=1)),
        },
    )
    amount, count = rows.one()
    return Usage(amount, count)


async def page(connection: AsyncConnection, query: ListOperatorWirePolicies) -> list[Row[Any]]:
    """Policies of all tenants; one row more than the page has, where there is one."""
    edge_at, lowest_or_highest = edge_of(query.place, query.order)
    values = {
        "edge_at": edge_at,
        "edge_id": query.place.id if query.place else str(lowest_or_highest),
        "tenant": query.tenant,
        "limit": query.limit + 1,
    }
    pages = _PAGES
    if query.customer_id is not None:
        pages, values = _PAGES_OF_CUSTOMER, values | {"customer_id": query.customer_id}
    rows = await connection.execute(pages[query.order], values)
    return list(rows)
