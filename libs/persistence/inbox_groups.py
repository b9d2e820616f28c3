"""Commands of the inbox, many at once: single statements over arrays, each a transaction by itself.

A statement does what is certain and waits for nobody's row; accepting waits for whoever is recording the same command.
What it leaves out is left to `inbox`, one by one: see `libs.handling.group_commit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID, uuid4

import asyncpg

from libs.persistence.inbox import Accepting, Leased

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

_ACCEPT = """
    INSERT INTO inbox (command_id, operation, message_id, request_id, principal, body, body_hash, reply_to, deadline,
        keep_for_ever, attempts, lease, lease_until)
    SELECT a.*, CASE WHEN lease IS NOT NULL THEN clock_timestamp() + make_interval(secs => $13) END
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bytea[], $7::text[], $8::text[],
        $9::float8[], $10::bool[], $11::integer[], $12::uuid[]) AS a (command_id, operation, message_id, request_id,
        principal, body, body_hash, reply_to, deadline, keep_for_ever, attempts, lease)
    ORDER BY a.command_id
    ON CONFLICT DO NOTHING RETURNING command_id
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


async def accept_together(
    connection: asyncpg.Connection,
    commands: Sequence[Accepting],
    *,
    leases: int,
    lease_seconds: float,
) -> Mapping[UUID, Leased | None]:
    """Record new commands that have no ordering key, by one statement. One that is there already is left out, whatever
    is known of it: `inbox.accept` tells.

    Args:
        leases: so many of them are taken at once; None stands for one that waits.
    """
    taken = [uuid4() if number < leases else None for number in range(len(commands))]
    rows = await connection.fetch(
        _ACCEPT,
        [command.command_id for command in commands],
        [command.operation for command in commands],
        [command.message_id for command in commands],
        [command.request_id for command in commands],
        [command.principal for command in commands],
        [command.body for command in commands],
        [command.body_hash for command in commands],
        [command.reply_to for command in commands],
        [command.deadline for command in commands],
        [command.keep_for_ever for command in commands],
        [1 if lease else 0 for lease in taken],
        taken,
        lease_seconds,
    )
    recorded = {row["command_id"] for row in rows}
    return {
        command.command_id: _leased(command, lease) if lease else None
        for command, lease in zip(commands, taken, strict=True)
        if command.command_id in recorded
    }


def _leased(command: Accepting, lease: UUID) -> Leased:
    return Leased(
        command_id=command.command_id,
        operation=command.operation,
        message_id=command.message_id,
        request_id=command.request_id,
        principal=command.principal,
        body=command.body,
        reply_to=command.reply_to,
        deadline=command.deadline,
        attempts=1,
        lease=lease,
    )


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
