"""Writes of commands' drivers that are fenced by the leases: SQL constants over arrays, for asyncpg.

A write of a group skips commands whose rows are locked; `libs.handling.group_commit` then writes each of those by the
same statement, in a transaction that has waited for the lock (`fenced`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

import asyncpg

from libs.persistence.engine import Database
from libs.persistence.idle_locks import MILLISECONDS, SETTING
from libs.persistence.inbox import Leased, LeaseLost

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class LeasedValue(Generic[ValueT]):
    """What a driver writes for a command that is leased to it."""

    command: Leased
    value: ValueT

    @property
    def command_id(self) -> UUID:
        return self.command.command_id


# `LIMIT cardinality($1)` keeps all rows of `answered`. It makes the planner expect one, so that each row is found by
# its key even by a plan that was made, and cached, while the table was empty.
_FINISH = """
    WITH answered AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bytea[]) AS a (command_id, lease, reply)
        LIMIT cardinality($1)
    ), leased AS (
        SELECT answered.* FROM answered
        JOIN inbox i ON i.command_id = answered.command_id AND i.lease = answered.lease
        ORDER BY answered.command_id FOR NO KEY UPDATE OF i SKIP LOCKED
    )
    UPDATE inbox i SET finished_at = clock_timestamp(), reply = leased.reply, lease = NULL,
        lease_until = NULL, last_error = NULL,
        body = CASE WHEN i.operation = ANY($4::text[]) THEN i.body ELSE '' END
    FROM leased WHERE i.command_id = leased.command_id
    RETURNING i.command_id
    """

_LOCK_LEASED = """
    SELECT set_config($3, $4, true) FROM inbox WHERE command_id = $1 AND lease = $2 AND finished_at IS NULL
    FOR NO KEY UPDATE
    """


@asynccontextmanager
async def fenced(database: Database, command: Leased) -> AsyncIterator[asyncpg.Connection]:
    """As `inbox.fenced`, on a connection of asyncpg's.

    Raises:
        LeaseLost: after the transaction has ended, so that its connection stays in the pool.
    """
    async with database.driver_transaction() as connection:
        locked = await connection.fetchval(
            _LOCK_LEASED, command.command_id, command.lease, SETTING, MILLISECONDS
        )
        if locked is not None:
            yield connection
    if locked is None:
        raise LeaseLost(str(command.command_id))


async def finish(
    connection: asyncpg.Connection,
    replies: Sequence[LeasedValue[bytes]],
    *,
    keep_bodies_of: Collection[str] = (),
) -> Mapping[UUID, None]:
    """Store the final replies and drop the bodies, but those of some operations; the commands that were finished."""
    rows = await connection.fetch(
        _FINISH,
        [reply.command_id for reply in replies],
        [reply.command.lease for reply in replies],
        [reply.value for reply in replies],
        [*keep_bodies_of],
    )
    return {row["command_id"]: None for row in rows}
