"""Commands of the inbox, many at once: single statements over arrays, each a transaction by itself.

A statement does what is certain and waits for nobody's row; accepting waits for whoever is recording the same command.
What it leaves out is left to `inbox`, one by one: see `libs.handling.group_commit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

import asyncpg

from libs.persistence.inbox import Leased

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Held(Generic[ValueT]):
    """What the driver of a command is to write."""

    command: Leased
    value: ValueT

    @property
    def command_id(self) -> UUID:
        return self.command.command_id


EACH_BY_ITS_KEY = "LIMIT cardinality($1)"
"""At the end of `asked`, which it leaves whole: PostgreSQL takes it for one row, and finds each row of a table by key.
Without it, the plan that a session makes while the tables are empty, and keeps, reads all of them.
"""

HELD = """
    held AS (
        SELECT asked.* FROM asked JOIN inbox i ON i.command_id = asked.command_id AND i.lease = asked.lease
        ORDER BY asked.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    )
"""
"""The fence of a group, as a part of a WITH: of the rows `asked`, which have a `command_id` and a `lease`, those whose
lease is held; a finished command has none. One whose row somebody has locked is left out: nobody waits for it here.
"""

_FINISH = f"""
    WITH asked AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) AS a (command_id, lease, reply) {EACH_BY_ITS_KEY}
    ), {HELD}
    UPDATE inbox i SET finished_at = clock_timestamp(), reply = held.reply, body = '', lease = NULL,
        lease_until = NULL, last_error = NULL
    FROM held WHERE i.command_id = held.command_id
    RETURNING i.command_id
    """  # noqa: S608 - constants


_LOCK_LEASED = (
    "SELECT 1 FROM inbox WHERE command_id = $1 AND lease = $2 AND finished_at IS NULL"
    " FOR NO KEY UPDATE"
)


async def lock_leased(connection: asyncpg.Connection, command: Leased) -> bool:
    """Lock the command's row until the transaction ends, and wait for that; whether its lease is this one."""
    locked = await connection.fetchval(_LOCK_LEASED, command.command_id, command.lease)
    return locked is not None


async def finish_together(
    connection: asyncpg.Connection, answers: Sequence[Held[bytes]]
) -> Mapping[UUID, None]:
    """As `inbox.finish` with its fence, of several by one statement; those that it finished."""
    rows = await connection.fetch(
        _FINISH,
        [held.command_id for held in answers],
        [held.command.lease for held in answers],
        [held.value for held in answers],
    )
    return {row["command_id"]: None for row in rows}
