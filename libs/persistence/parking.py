"""Commands that are parked: driving them again does not help, so an operator decides.

    open ──10 faulty drives in a row, or at once with a reason──▶ parked ──retry──▶ open, the last of its key
                                                                     └──abandon──▶ finished: the reply is an error

A parked command is not final: a request that repeats it is told that it is in progress. It is neither claimed nor
waited for by later commands of its ordering key. They may be carried out before it, so that a retried command takes its
place behind those that are open by then: commands of one key still never overlap, but a retried update may overwrite a
later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.inbox import Leased, lock_order

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


# A parked command is never due: a process of a release that does not know of parking would drive it.
_PARK = text(
    "UPDATE inbox SET parked_at = clock_timestamp(), parked_because = :because, lease = NULL, lease_until = NULL,"
    " due_at = clock_timestamp() + interval '100 years' WHERE command_id = :id"
)
_COUNT_FAULT = text(
    """
    UPDATE inbox SET faults = faults + 1, lease = NULL, lease_until = NULL, last_error = :error,
        due_at = clock_timestamp() + CASE WHEN faults + 1 >= :limit THEN interval '100 years'
            ELSE make_interval(secs => :seconds) END,
        parked_at = CASE WHEN faults + 1 >= :limit THEN clock_timestamp() END,
        parked_because = CASE WHEN faults + 1 >= :limit THEN :because END
    WHERE command_id = :id RETURNING parked_at IS NOT NULL
    """
)
_COLUMNS = (
    "SELECT command_id, operation, ordering_key, message_id, request_id, principal, accepted_at, attempts, faults,"
    " last_error, due_at, coalesce(lease_until > clock_timestamp(), false), forgetting, parked_at, parked_because"
    " FROM inbox WHERE finished_at IS NULL"
)
_OLDEST = text(_COLUMNS + " ORDER BY accepted_at, command_id LIMIT :limit")
_OLDEST_PARKED = text(
    _COLUMNS + " AND parked_at IS NOT NULL ORDER BY parked_at, command_id LIMIT :limit"
)
_FIND = text(_COLUMNS + " AND command_id = :id")
_LOCK = text(_COLUMNS + " AND command_id = :id FOR UPDATE")
_HASTEN = text("UPDATE inbox SET due_at = clock_timestamp() WHERE command_id = :id")
_UNPARK = text(
    "UPDATE inbox SET sequence = DEFAULT, parked_at = NULL, parked_because = NULL, faults = 0, forgetting = false,"
    " due_at = clock_timestamp() WHERE command_id = :id"
)
_ABANDON = text(
    "UPDATE inbox SET finished_at = clock_timestamp(), reply = :reply, body = '', lease = NULL, lease_until = NULL,"
    " forgetting = false, keep_for_ever = true, abandoned_by = :by, abandoned_because = :because"
    " WHERE command_id = :id"
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
    """Drive it again after `seconds`, or park it at `limit` faults in a row; true when it is parked.

    Called in a fenced transaction.
    """
    counted = await connection.execute(
        _COUNT_FAULT,
        {
            "id": command.command_id,
            "seconds": seconds,
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
    """A command of any tenant, for operators; None when there is none or it is final."""
    row = (await connection.execute(_FIND, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def lock(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """As `find`; until the transaction ends, no process takes it up and no operator decides on it."""
    row = (await connection.execute(_LOCK, {"id": command_id})).first()
    return OpenCommand(*row) if row is not None else None


async def retry(connection: AsyncConnection, command_id: UUID) -> OpenCommand | None:
    """Have it driven now, its faults counted anew; as it was before, None when there is none or it is final."""
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
    """End a parked command for good with this reply; the row is never purged. It is locked by this transaction."""
    await connection.execute(
        _ABANDON, {"id": command.command_id, "reply": reply, "by": by, "because": because}
    )
