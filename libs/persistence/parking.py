"""Commands that are parked: driving them again does not help, so an operator decides.

    open ──10 faulty drives in a row, or at once with a reason──▶ parked ──retry──▶ open, the last of its key
                                                                     └──abandon──▶ finished: the reply is an error

A parked command is not final: a request that repeats it is answered 409 `idempotency_in_progress`. It is not claimed,
and later commands of its ordering key do not wait for it. They may be carried out before it, so a retried command takes
its place behind those that are open by then: commands of one key never overlap, but a retried update may overwrite a
later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Integer,
    Interval,
    Select,
    Text,
    bindparam,
    case,
    false,
    func,
    literal,
    null,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.inbox import Leased
from libs.persistence.inbox_acceptance import lock_order
from libs.persistence.tables import inbox as table

PARKING_DDL = (
    """
    ALTER TABLE inbox
        ADD COLUMN faults integer NOT NULL DEFAULT 0,
        ADD COLUMN parked_at timestamptz,
        ADD COLUMN parked_because text,
        ADD COLUMN abandoned_by text,
        ADD COLUMN abandoned_because text,
        ADD COLUMN forgetting boolean NOT NULL DEFAULT false
    """,
    "COMMENT ON COLUMN inbox.faults IS 'drives in a row that ended by a fault of ours'",
    (
        "COMMENT ON COLUMN inbox.forgetting IS"
        " 'nothing was started and the caller may have been told so; not driven until that is known'"
    ),
)
"""Added to the table of `inbox.DDL` by a later migration."""

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
_OLDEST = _OPEN.order_by(table.c.accepted_at, table.c.command_id).limit(bindparam("limit"))
_OLDEST_PARKED = (
    _OPEN.where(table.c.parked_at.is_not(None))
    .order_by(table.c.parked_at, table.c.command_id)
    .limit(bindparam("limit"))
)
_FIND = _OPEN.where(table.c.command_id == bindparam("id"))
_LOCK = _FIND.with_for_update()
_HASTEN = _CHANGE.values(due_at=func.clock_timestamp())
_UNPARK = _CHANGE.values(
    sequence=text(
        "DEFAULT"
    ),  # an identity column takes no other value, and Core has no word for it
    parked_at=null(),
    parked_because=null(),
    faults=0,
    forgetting=False,
    due_at=func.clock_timestamp(),
)
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


async def oldest(
    connection: AsyncConnection, *, parked_only: bool, limit: int
) -> list[OpenCommand]:
    """Commands of every tenant that are not final, for operators: the oldest, or those parked longest, first."""
    statement = _OLDEST_PARKED if parked_only else _OLDEST
    return [OpenCommand(*row) for row in await connection.execute(statement, {"limit": limit})]


async def find(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """A command of any tenant, for operators; None when it is final or unknown."""
    row = (await connection.execute(_FIND, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def lock(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """As `find`, and lock its row: until the transaction ends, no process claims it and no operator decides on it."""
    row = (await connection.execute(_LOCK, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def retry(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """Make the command due now, its faults counted anew. Its former state; None when it is final or unknown."""
    found = await find(connection, command_id)
    if found is not None and found.ordering_key is not None:
        # Before the row, as where a command is accepted.
        await lock_order(connection, found.ordering_key)
    command = await lock(connection, command_id)
    if command is not None:
        statement = _UNPARK if command.parked_at is not None else _HASTEN
        await connection.execute(statement, {"id": command_id})
    return command


async def abandon(
    connection: AsyncConnection, command: OpenCommand, *, reply: bytes, by: str, because: str
) -> None:
    """End a parked command for good with this reply; its row is never purged. Called after `lock`."""
    await connection.execute(
        _ABANDON, {"id": command.command_id, "final_reply": reply, "by": by, "because": because}
    )
