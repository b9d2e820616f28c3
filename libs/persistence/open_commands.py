"""Commands that are not final, of any tenant: in pages and one by its id, as operators see them, and made due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    Select,
    bindparam,
    false,
    func,
    not_,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import BYTEA

from libs.contracts.exact_json import encode
from libs.contracts.operating.pages import Order
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.keyset import beyond, in_order
from libs.persistence.tables import INSTANT, UUID_TYPE
from libs.persistence.tables import inbox as table


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """A command that is not final.

    Args:
        principal: encoded.
        last_error: the code of its last drive's error.
        is_driven: a process drives it at the moment.
    """

    command_id: UUID
    operation: str
    ordering_key: str | None
    message_id: str
    request_id: str
    principal: bytes
    accepted_at: datetime
    attempts: int
    faults: int
    last_error: str | None
    next_attempt_at: datetime
    is_driven: bool
    parked_at: datetime | None
    parked_because: str | None


_OPEN: Select[Any] = select(
    table.c.command_id,
    table.c.operation,
    table.c.ordering_key,
    table.c.message_id,
    table.c.request_id,
    table.c.principal,
    table.c.accepted_at,
    table.c.attempts,
    table.c.faults,
    table.c.last_error,
    table.c.due_at,
    func.coalesce(table.c.lease_until > func.clock_timestamp(), false()),
    table.c.parked_at,
    table.c.parked_because,
).where(table.c.finished_at.is_(None))
_TENANT = bindparam("tenant_text", type_=BYTEA)
"""As it stands in an encoded principal, which need not be readable."""
_IS_PARKED = table.c.parked_at.is_not(None)
_AFTER_AT, _AFTER_ID = bindparam("after_at", type_=INSTANT), bindparam("after_id", type_=UUID_TYPE)


def _page(key: Column[Any], order: Order) -> Select[Any]:
    """A page ordered by `key`: all open commands are read by an index, and sorted."""
    place, after = tuple_(key, table.c.command_id), tuple_(_AFTER_AT, _AFTER_ID)
    return (
        _OPEN.where(
            key.is_not(None),
            or_(
                bindparam("is_parked", type_=Boolean).is_(None),
                bindparam("is_parked") == _IS_PARKED,
            ),
            or_(_TENANT.is_(None), func.position(_TENANT.op("IN")(table.c.principal)) > 0),
            or_(_AFTER_AT.is_(None), beyond(place, after, order)),
        )
        .order_by(*in_order(order, key, table.c.command_id))
        .limit(bindparam("limit"))
    )


_PAGES = {
    (key.name, order): _page(key, order)
    for key in (table.c.accepted_at, table.c.parked_at)
    for order in Order
}
_FIND = _OPEN.where(table.c.command_id == bindparam("id"))
_LOCK = _FIND.with_for_update()
_CHANGE = update(table).where(table.c.command_id == bindparam("id"), table.c.finished_at.is_(None))
_MAKE_DUE = _CHANGE.where(table.c.parked_at.is_(None)).values(due_at=func.clock_timestamp())
_UNPARK_AND_MAKE_DUE = _CHANGE.where(not_(table.c.forgetting)).values(
    due_at=func.clock_timestamp(), parked_at=null(), parked_because=null(), faults=0
)
_END_LEASE = _CHANGE.values(lease=null(), lease_until=null())


async def page(
    connection: AsyncConnection,
    *,
    parked: bool | None,
    tenant: str | None,
    after: tuple[datetime, UUID] | None,
    order: Order,
    limit: int,
) -> list[OpenCommand]:
    """A page of commands that are not final, for operators, by the time of acceptance or, of `parked` ones, of parking.

    Args:
        parked: True: only parked ones; False: only others; None: all.
        after: time and id of the last one of the page before.
    """
    statement = _PAGES["parked_at" if parked else "accepted_at", order]
    after_at, after_id = after if after is not None else (None, None)
    rows = await connection.execute(
        statement,
        {
            "is_parked": parked,
            "tenant_text": None if tenant is None else b'"tenant":' + encode(tenant),
            "after_at": after_at,
            "after_id": after_id,
            "limit": limit,
        },
    )
    return [OpenCommand(*row) for row in rows]


async def find(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """A command of any tenant, for operators; None when it is final or unknown."""
    row = (await connection.execute(_FIND, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def lock(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """As `find`, and lock its row: until the transaction ends, no process claims it and no operator decides on it."""
    row = (await connection.execute(_LOCK, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def make_due(connection: AsyncConnection, command_id: UUID, *, unpark: bool) -> None:
    """Have a command that is not final driven now, rather than at the end of its pause.

    Args:
        unpark: also a parked one, which keeps its place, but none that is being forgotten: nothing of that was started.
            False: a parked one stays so.
    """
    statement = _UNPARK_AND_MAKE_DUE if unpark else _MAKE_DUE
    await connection.execute(statement, {"id": command_id})


async def end_lease(connection: AsyncConnection, command_id: UUID) -> None:
    """Have a drive whose lease has run out commit nothing more. The command is locked and not driven."""
    await connection.execute(_END_LEASE, {"id": command_id})
