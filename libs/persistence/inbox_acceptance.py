"""Recording commands in the inbox: one statement over arrays of any length, plain SQL with asyncpg's parameters.

A group of commands without ordering keys is recorded on asyncpg, as a transaction by itself. A single command, which
may have an ordering key, is recorded by the same statement in a transaction of SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from sqlalchemy import Text, any_, bindparam, func, literal, null, select, text, update

from libs import tracing
from libs.contracts.exact_json import encode
from libs.contracts.principal import Principal
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.forgetting import CAN_BE_FORGOTTEN
from libs.persistence.idle_locks import ENDED_WHEN_IDLE
from libs.persistence.inbox import LEASE_SECONDS, Leased
from libs.persistence.tables import inbox as table


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommand:
    """A command as it arrived: `principal` and `body` encoded, sensitive fields sealed."""

    command_id: UUID
    operation: str
    message_id: str
    request_id: str
    principal: bytes
    tenant: str
    body: bytes
    body_hash: str | None
    reply_to: str | None
    deadline: float
    keep_for_ever: bool = False
    trace: str | None = None
    has_place: bool = False
    """Whether the process that records it may drive it at once (see `accept_together`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalCommand:
    """A command of the service's own, recorded in the transaction of its cause. `body` has no sensitive values."""

    command_id: UUID
    operation: str
    ordering_key: str | None
    principal: Principal
    body: dict[str, Any]
    keep_for_ever: bool = False


@dataclass(frozen=True, slots=True)
class KnownCommand:
    """The record of a command whose id arrived again.

    Args:
        is_redelivery: of a message that began the command, or that was refused before the command was forgotten. It
            has no effect and gets no answer, unlike another request with the id.
        body: empty once the command is finished, unless its service keeps the bodies of its operation.
    """

    is_redelivery: bool
    body_hash: str | None
    body: bytes
    reply: bytes | None


# `LIMIT cardinality($1)` keeps all rows of `arrived`. It makes the planner expect one, so that each row is found by its
# key even by a plan that was made, and cached, while the table was empty.
# A forgotten command begins anew by a new message. A redelivery of a message whose caller was answered has no effect:
# of one that had begun the command, which is in `forgotten_messages` as it is, or of one that was answered as a second
# request while the command was open, which is there after `refused:`.
# Rows are locked in the order of their ids, so that two groups do not deadlock. Only forgotten commands are waited for,
# and those that another transaction is recording.
_RECORD = """
    WITH arrived AS (
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[],
            $8::text[], $9::text[], $10::float8[], $11::bool[], $12::integer[], $13::uuid[], $14::text[], $15::text[])
            AS a (command_id, operation, ordering_key, message_id, request_id, principal, body, body_hash, reply_to,
            deadline, keep_for_ever, attempts, lease, trace_context, tenant)
        LIMIT cardinality($1)
    ), forgotten AS (
        SELECT arrived.* FROM arrived JOIN inbox i ON i.command_id = arrived.command_id
        WHERE i.forgotten AND arrived.message_id <> ALL (i.forgotten_messages || i.message_id)
            AND ('refused:' || arrived.message_id) <> ALL (i.forgotten_messages)
        ORDER BY i.command_id FOR UPDATE OF i
    ), begun_anew AS (
        UPDATE inbox i SET sequence = DEFAULT, ordering_key = f.ordering_key, message_id = f.message_id,
            request_id = f.request_id, principal = f.principal, body = f.body, body_hash = f.body_hash,
            reply_to = f.reply_to, deadline = f.deadline, attempts = f.attempts, lease = f.lease,
            lease_until = CASE WHEN f.lease IS NOT NULL THEN clock_timestamp() + make_interval(secs => $16) END,
            trace_context = f.trace_context, tenant = f.tenant, keep_for_ever = i.keep_for_ever OR f.keep_for_ever,
            due_at = clock_timestamp(), accepted_at = clock_timestamp(), finished_at = NULL, forgotten = false,
            audited = false, last_error = NULL,
            forgotten_messages = i.forgotten_messages || i.message_id
        FROM forgotten f WHERE i.command_id = f.command_id
        RETURNING i.command_id
    ), recorded AS (
        INSERT INTO inbox (command_id, operation, ordering_key, message_id, request_id, principal, body, body_hash,
            reply_to, deadline, keep_for_ever, attempts, lease, trace_context, tenant, lease_until)
        SELECT arrived.*,
            CASE WHEN lease IS NOT NULL THEN clock_timestamp() + make_interval(secs => $16) END
        FROM arrived ORDER BY command_id
        ON CONFLICT DO NOTHING RETURNING command_id
    )
    SELECT command_id FROM begun_anew UNION ALL SELECT command_id FROM recorded
    """

_MESSAGE = bindparam("message", type_=Text)
_REFUSED = literal("refused:", Text) + _MESSAGE
_KNOWN = (
    select(
        (any_(func.array_append(table.c.forgotten_messages, table.c.message_id)) == _MESSAGE).label(
            "is_redelivery"
        ),
        (any_(table.c.forgotten_messages) == _REFUSED).label("was_refused"),
        table.c.body_hash,
        table.c.body,
        table.c.reply,
        table.c.forgotten,
        CAN_BE_FORGOTTEN.label("can_be_forgotten"),
    )
    .where(table.c.command_id == bindparam("id"))
    .with_for_update()
)
_NOTE_REFUSED = (
    update(table)
    .where(table.c.command_id == bindparam("id"))
    .values(forgotten_messages=func.array_append(table.c.forgotten_messages, _REFUSED))
)
_HAS_NO_ORDER = select(table.c.command_id).where(
    table.c.command_id == bindparam("id"), table.c.ordering_key.is_(None)
)
# An identity column can be set to DEFAULT only, which Core cannot express.
_GIVE_ORDER = (
    update(table)
    .where(table.c.command_id == bindparam("id"), table.c.ordering_key.is_(None))
    .values(ordering_key=bindparam("key"), sequence=text("DEFAULT"))
)
_LEAVE_ORDER = (
    update(table).where(table.c.command_id == bindparam("id")).values(ordering_key=null())
)
_LOCK_ORDER = select(
    func.pg_advisory_xact_lock(func.hashtext("inbox"), func.hashtext(bindparam("key", type_=Text))),
    ENDED_WHEN_IDLE,
)
_EARLIER = (
    select(table.c.command_id)
    .where(
        table.c.ordering_key == bindparam("key"),
        # As `inbox_queue` has it: see `tables.queue_index`.
        func.coalesce(table.c.finished_at, table.c.parked_at).is_(None),
    )
    .limit(1)
)


async def accept_together(
    connection: asyncpg.Connection,
    commands: Sequence[NewCommand],
    *,
    lease_seconds: float,
) -> Mapping[UUID, Leased | None]:
    """Record commands of different ids that have no ordering key; those that have a place are leased at once. Those
    whose ids are known are left out of the answer, which has None for one that waits.
    """
    leased = [uuid4() if command.has_place else None for command in commands]
    parameters = _parameters(commands, [None] * len(commands), leased, lease_seconds)
    rows = await connection.fetch(_RECORD, *parameters)
    recorded = {row["command_id"] for row in rows}
    return {
        command.command_id: _leased(command, lease)
        for command, lease in zip(commands, leased, strict=True)
        if command.command_id in recorded
    }


async def accept(
    connection: AsyncConnection,
    command: NewCommand,
    ordering_key: str | None,
    *,
    lease: bool,
    lease_seconds: float = LEASE_SECONDS,
) -> Leased | KnownCommand | None:
    """Record a command, unless its id is known.

    Args:
        lease: lease it at once, unless an earlier command of its key is open and not parked.

    Returns:
        Leased when it is new and may be driven now; None when it is new and waits; KnownCommand otherwise.
    """
    may_drive = lease
    if ordering_key is not None:
        await lock_order(connection, ordering_key)
        earlier = await connection.execute(_EARLIER, {"key": ordering_key})
        may_drive = lease and earlier.first() is None
    lease_id = uuid4() if may_drive else None
    parameters = _parameters([command], [ordering_key], [lease_id], lease_seconds)
    while True:
        recorded = await connection.exec_driver_sql(_RECORD, parameters)
        if recorded.first() is not None:
            return _leased(command, lease_id)
        # Waits for a driver that commits at the moment: it may be forgetting the command.
        arrived = {"id": command.command_id, "message": command.message_id}
        known = (await connection.execute(_KNOWN, arrived)).first()
        if known is None:
            continue  # purged between the two statements
        is_redelivery = known.is_redelivery or (known.forgotten and known.was_refused)
        if known.forgotten and not is_redelivery:
            continue
        # It is answered for good once this commits, and must not begin the command if it is delivered again.
        if known.can_be_forgotten and not (is_redelivery or known.was_refused):
            await connection.execute(_NOTE_REFUSED, arrived)
        return KnownCommand(is_redelivery, known.body_hash, known.body, known.reply)


async def enqueue(connection: AsyncConnection, command: InternalCommand) -> None:
    """Record an internal command in the caller's transaction. A command whose id is known is not changed."""
    await accept(
        connection,
        NewCommand(
            command_id=command.command_id,
            operation=command.operation,
            message_id=str(command.command_id),
            request_id=str(command.command_id),
            principal=encode(command.principal),
            tenant=command.principal.tenant,
            body=encode(command.body),
            body_hash=None,
            reply_to=None,
            deadline=0.0,
            keep_for_ever=command.keep_for_ever,
            trace=tracing.current(),
        ),
        command.ordering_key,
        lease=False,
    )


async def give_order(connection: AsyncConnection, command_id: UUID, ordering_key: str) -> bool:
    """Give an ordering key to a command that was recorded without one: it comes after the open commands of that key.

    True: the command has to be claimed anew. False: it has a key already. Called where its row is not locked.
    """
    found = await connection.execute(_HAS_NO_ORDER, {"id": command_id})
    if found.first() is None:
        return False
    await lock_order(connection, ordering_key)
    given = await connection.execute(_GIVE_ORDER, {"id": command_id, "key": ordering_key})
    return given.rowcount == 1


async def leave_order(connection: AsyncConnection, command_id: UUID) -> None:
    """Take the ordering key from a command whose effect is made: later commands of the key do not wait for its end.

    Called in the fenced transaction of the effect.
    """
    await connection.execute(_LEAVE_ORDER, {"id": command_id})


async def lock_order(connection: AsyncConnection, ordering_key: str) -> None:
    """Until commit, no other transaction places a command of this key: `sequence` grows in commit order within it."""
    await connection.execute(_LOCK_ORDER, {"key": ordering_key})


def _parameters(
    commands: Sequence[NewCommand],
    ordering_keys: Sequence[str | None],
    leases: Sequence[UUID | None],
    lease_seconds: float,
) -> tuple[Any, ...]:
    return (
        [command.command_id for command in commands],
        [command.operation for command in commands],
        ordering_keys,
        [command.message_id for command in commands],
        [command.request_id for command in commands],
        [command.principal for command in commands],
        [command.body for command in commands],
        [command.body_hash for command in commands],
        [command.reply_to for command in commands],
        [command.deadline for command in commands],
        [command.keep_for_ever for command in commands],
        [1 if lease else 0 for lease in leases],
        leases,
        [command.trace for command in commands],
        [command.tenant for command in commands],
        lease_seconds,
    )


def _leased(command: NewCommand, lease: UUID | None) -> Leased | None:
    if lease is None:
        return None
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
        tenant=command.tenant,
        trace=command.trace,
    )
