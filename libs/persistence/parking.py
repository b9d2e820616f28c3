"""Commands that are parked: driving them again does not help, so an operator decides.

    open ──faulty or interrupted drives in a row,──▶ parked ──retry──▶ open, the last of its key
           or at once with a reason                     └──abandon──▶ finished: the reply is an error

A parked command is not final: a request that repeats it is answered 409 `idempotency_in_progress`. It is not claimed,
and later commands of its ordering key do not wait for it. They may be carried out before it, so a retried command takes
its place behind those that are open by then: commands of one key never overlap, but a retried update may overwrite a
later one. One without a key keeps its place.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import Integer, Interval, Text, bindparam, case, func, literal, null, text, update

from libs.persistence import open_commands
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.inbox import Leased
from libs.persistence.inbox_acceptance import lock_order
from libs.persistence.open_commands import OpenCommand
from libs.persistence.tables import inbox as table

NEVER = literal(timedelta(days=36_500), Interval)

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
# An identity column can be set to DEFAULT only, which Core cannot express.
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


async def retry(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """Make the command due now; the faults of a parked one are counted from 0.

    Returns its former state, None when it is final or unknown.

    A parked one comes after those of its order, which did not wait for it. One without an order keeps its place among
    all that were accepted: what a later one has set stays.
    """
    found = await open_commands.find(connection, command_id)
    if found is not None and found.ordering_key is not None:
        # Before the row, as where a command is accepted.
        await lock_order(connection, found.ordering_key)
    command = await open_commands.lock(connection, command_id)
    if command is not None:
        if command.parked_at is None:
            await open_commands.make_due(connection, command_id, unpark=False)
        else:
            statement = _UNPARK if command.ordering_key is None else _UNPARK_AS_LAST
            await connection.execute(statement, {"id": command_id})
    return command


async def hold(connection: AsyncConnection, command_id: UUID, *, seconds: float) -> None:
    """Make an open command that no process drives due after `seconds` at the earliest; a parked one is never due."""
    await connection.execute(_HOLD, {"id": command_id, "pause": timedelta(seconds=seconds)})


async def abandon(
    connection: AsyncConnection, command: OpenCommand, *, reply: bytes, by: str, because: str
) -> None:
    """End a parked command for good with this reply; its row is never purged. Called after `open_commands.lock`."""
    await connection.execute(
        _ABANDON, {"id": command.command_id, "final_reply": reply, "by": by, "because": because}
    )
