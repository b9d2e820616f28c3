"""Commands that are parked: driving them again does not help, so an operator decides.

    open ──10 faulty drives in a row, or at once with a reason──▶ parked ──retry──▶ open, the last of its key
                                                                     └──abandon──▶ finished: the reply is an error

A parked command is not final: a request that repeats it is answered 409 `idempotency_in_progress`. It is not claimed,
and later commands of its ordering key do not wait for it. They may be carried out before it, so a retried command takes
its place behind those that are open by then: commands of one key never overlap, but a retried update may overwrite a
later one. One without a key keeps its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    Integer,
    Interval,
    Select,
    Text,
    asc,
    bindparam,
    case,
    desc,
    false,
    func,
    literal,
    null,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import BYTEA

from libs.contracts.exact_json import encode
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.inbox import Leased
from libs.persistence.inbox_acceptance import lock_order
from libs.persistence.tables import INSTANT, UUID_TYPE
from libs.persistence.tables import inbox as table

NEVER = literal(timedelta(days=36_500), Interval)


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """A command that is not final.

    Args:
        principal: encoded.
        last_error: the code of its last drive's error.
        is_driven: a process drives it at the moment.
        forgetting: nothing of it was started; its caller may have been told so.
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
    forgetting: bool
    parked_at: datetime | None
    parked_because: str | None


_IS_LIMIT = table.c.faults + 1 >= bindparam("limit", type_=Integer)
_CHANGE = update(table).where(table.c.command_id == bindparam("id"))
# A parked command is never due: a process of a release that does not know of parking would drive it.
_PARK = _CHANGE.values(
    parked_at=func.clock_timestamp(),
    parked_because=bindparam("because"),
    lease=null(),
    lease_until=null(),
    due_at=func.clock_timestamp() + NEVER,
)
_COUNT_FAULT = _CHANGE.values(
    faults=table.c.faults + 1,
    lease=null(),
    lease_until=null(),
    last_error=bindparam("error"),
    due_at=func.clock_timestamp()
    + case((_IS_LIMIT, NEVER), else_=bindparam("pause", type_=Interval)),
    parked_at=case((_IS_LIMIT, func.clock_timestamp())),
    parked_because=case((_IS_LIMIT, bindparam("because", type_=Text))),
).returning(table.c.parked_at.is_not(None))
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
    table.c.forgetting,
    table.c.parked_at,
    table.c.parked_because,
).where(table.c.finished_at.is_(None))
_TENANT = bindparam("tenant_text", type_=BYTEA)
"""As it stands in an encoded principal, which need not be readable."""
_IS_PARKED = table.c.parked_at.is_not(None)
_AFTER_AT, _AFTER_ID = bindparam("after_at", type_=INSTANT), bindparam("after_id", type_=UUID_TYPE)


def _page(key: Column[Any], *, newest: bool) -> Select[Any]:
    """A page by this time; the open commands are read by the index of those, and sorted."""
    place, after = tuple_(key, table.c.command_id), tuple_(_AFTER_AT, _AFTER_ID)
    direction = desc if newest else asc
    return (
        _OPEN.where(
            key.is_not(None),
            or_(
                bindparam("is_parked", type_=Boolean).is_(None),
                bindparam("is_parked") == _IS_PARKED,
            ),
            or_(_TENANT.is_(None), func.position(_TENANT.op("IN")(table.c.principal)) > 0),
            or_(_AFTER_AT.is_(None), place < after if newest else place > after),
        )
        .order_by(direction(key), direction(table.c.command_id))
        .limit(bindparam("limit"))
    )


_PAGES = {
    (key.name, newest): _page(key, newest=newest)
    for key in (table.c.accepted_at, table.c.parked_at)
    for newest in (False, True)
}
_FIND = _OPEN.where(table.c.command_id == bindparam("id"))
_LOCK = _FIND.with_for_update()
_HASTEN = _CHANGE.values(due_at=func.clock_timestamp())
_HOLD = _CHANGE.where(table.c.finished_at.is_(None)).values(
    due_at=func.greatest(
        table.c.due_at, func.clock_timestamp() + bindparam("pause", type_=Interval)
    )
)
_UNPARK = _CHANGE.values(
    parked_at=null(),
    parked_because=null(),
    faults=0,
    forgetting=False,
    due_at=func.clock_timestamp(),
)
# An identity column takes no other value, and Core has no word for it.
_UNPARK_AS_LAST = _UNPARK.values(sequence=text("DEFAULT"))
_ABANDON = _CHANGE.values(
    finished_at=func.clock_timestamp(),
    reply=bindparam("final_reply"),
    body=b"",
    lease=null(),
    lease_until=null(),
    forgetting=False,
    keep_for_ever=True,
    abandoned_by=bindparam("by"),
    abandoned_because=bindparam("because"),
)


async def park(connection: AsyncConnection, command: Leased, because: str) -> None:
    """Park a command that this process drives, however many faults it has had. Called in a fenced transaction."""
    await connection.execute(_PARK, {"id": command.command_id, "because": because})


async def count_fault(
    connection: AsyncConnection,
    command: Leased,
    *,
    seconds: float,
    error: str,
    limit: int,
    because: str,
) -> bool:
    """Drive the command again after `seconds`, or park it at `limit` faults in a row; true when it is parked.

    Called in a fenced transaction.
    """
    counted = await connection.execute(
        _COUNT_FAULT,
        {
            "id": command.command_id,
            "pause": timedelta(seconds=seconds),
            "error": error,
            "limit": limit,
            "because": because,
        },
    )
    return bool(counted.scalar_one())


async def page(
    connection: AsyncConnection,
    *,
    parked: bool | None,
    tenant: str | None,
    after: tuple[datetime, UUID] | None,
    newest: bool,
    limit: int,
) -> list[OpenCommand]:
    """Commands that are not final, for operators: by the time at which they were accepted, or of `parked` ones parked.

    Args:
        parked: None: those that are driven, too.
        after: time and id of the last one of the page before.
    """
    statement = _PAGES["parked_at" if parked else "accepted_at", newest]
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


async def retry(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """Make the command due now, its faults counted anew. Its former state; None when it is final or unknown.

    A parked one comes after those of its order, which did not wait for it. One without an order keeps its place among
    all that were accepted: what a later one has set stays.
    """
    found = await find(connection, command_id)
    if found is not None and found.ordering_key is not None:
        # Before the row, as where a command is accepted.
        await lock_order(connection, found.ordering_key)
    command = await lock(connection, command_id)
    if command is not None:
        if command.parked_at is None:
            statement = _HASTEN
        else:
            statement = _UNPARK if command.ordering_key is None else _UNPARK_AS_LAST
        await connection.execute(statement, {"id": command_id})
    return command


async def hold(connection: AsyncConnection, command_id: UUID, *, seconds: float) -> None:
    """Have an open command that no process drives rest for so long at least; a parked one rests anyway."""
    await connection.execute(_HOLD, {"id": command_id, "pause": timedelta(seconds=seconds)})


async def abandon(
    connection: AsyncConnection, command: OpenCommand, *, reply: bytes, by: str, because: str
) -> None:
    """End a parked command for good with this reply; its row is never purged. Called after `lock`."""
    await connection.execute(
        _ABANDON, {"id": command.command_id, "final_reply": reply, "by": by, "because": because}
    )
