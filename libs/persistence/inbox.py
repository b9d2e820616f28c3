"""Commands that were accepted: from the moment its row is committed, PostgreSQL owns a command until it is final.

    accept ──▶ open, leased ──drive──▶ finished (reply stored)
                 │    ▲     ──────────▶ forgetting ──▶ forgotten (see `forgetting`)
                 │    │     ──────────▶ parked (see `parking`)
                 ▼    │
          lease ran out or due again: claimed by the sweeper of any replica

Commands with one ordering key are driven one at a time, in the order in which they were recorded; a parked command is
out of that order, and one that is retried counts as recorded then. A driver works under a lease; what it commits is
fenced by the lease, so that a stalled driver that was replaced cannot commit anything more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    Interval,
    and_,
    bindparam,
    delete,
    func,
    not_,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import encode
from libs.contracts.principal import Principal
from libs.persistence.engine import Database
from libs.persistence.tables import inbox as table

DDL = (
    """
    CREATE TABLE inbox (
        command_id uuid PRIMARY KEY,
        sequence bigint GENERATED ALWAYS AS IDENTITY,
        operation text NOT NULL,
        ordering_key text,
        message_id text NOT NULL,
        request_id text NOT NULL,
        principal bytea NOT NULL,
        body bytea NOT NULL,
        body_hash text,
        reply_to text,
        deadline double precision NOT NULL,
        attempts integer NOT NULL DEFAULT 0,
        lease uuid,
        lease_until timestamptz,
        due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_error text,
        accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        finished_at timestamptz,
        keep_for_ever boolean NOT NULL DEFAULT false,
        reply bytea,
        forgotten boolean NOT NULL DEFAULT false,
        forgotten_messages text[] NOT NULL DEFAULT '{}'
    )
    """,
    "CREATE INDEX inbox_due ON inbox (due_at) WHERE finished_at IS NULL",
    """
    CREATE INDEX inbox_order ON inbox (ordering_key, sequence)
    WHERE finished_at IS NULL AND ordering_key IS NOT NULL
    """,
    """
    CREATE INDEX inbox_kept ON inbox (finished_at) WHERE finished_at IS NOT NULL AND (forgotten OR NOT keep_for_ever)
    """,
)

LEASE_SECONDS = 10.0
"""The default; a lease is renewed several times in its length while its holder lives."""
RETENTION_HOURS = 24
PURGE_BATCH = 1000


class LeaseLost(Exception):
    """Another process drives this command now; this one must not commit anything more for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepting:
    """A command as it arrived: `principal` and `body` encoded, sensitive fields sealed."""

    command_id: UUID
    operation: str
    message_id: str
    request_id: str
    principal: bytes
    body: bytes
    body_hash: str | None
    reply_to: str | None
    deadline: float
    keep_for_ever: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """A command of the service's own, recorded in the transaction of what caused it. `body` holds nothing
    sensitive.
    """

    command_id: UUID
    operation: str
    ordering_key: str | None
    principal: Principal
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Leased:
    """A command that this process may drive, until the lease runs out."""

    command_id: UUID
    operation: str
    message_id: str
    request_id: str
    principal: bytes
    body: bytes
    reply_to: str | None
    deadline: float
    attempts: int
    lease: UUID
    forgetting: bool = False
    """Nothing was started, and its caller may have been told so: it is not driven (see `forgetting`)."""


@dataclass(frozen=True, slots=True)
class Existing:
    """What is known of a command whose id arrived again."""

    is_redelivery: bool
    """It was this very message that arrived before."""
    body_hash: str | None
    reply: bytes | None


# A command that was forgotten is begun anew by a new message, and never by a redelivery of one whose caller was told
# that nothing was started.
_INSERT = text(
    """
    INSERT INTO inbox (command_id, operation, ordering_key, message_id, request_id, principal, body, body_hash,
        reply_to, deadline, keep_for_ever, attempts, lease, lease_until)
    VALUES (:command_id, :operation, :ordering_key, :message_id, :request_id, :principal, :body, :body_hash,
        :reply_to, :deadline, :keep_for_ever, :attempts, CAST(:lease AS uuid),
        CASE WHEN CAST(:lease AS uuid) IS NOT NULL THEN clock_timestamp() + make_interval(secs => :seconds) END)
    ON CONFLICT (command_id) DO UPDATE SET (sequence, ordering_key, message_id, request_id, principal, body, body_hash,
        reply_to, deadline, attempts, lease, lease_until, due_at, accepted_at, finished_at, forgotten,
        forgotten_messages) = (DEFAULT, excluded.ordering_key, excluded.message_id, excluded.request_id,
        excluded.principal, excluded.body, excluded.body_hash, excluded.reply_to, excluded.deadline,
        excluded.attempts, excluded.lease,
        excluded.lease_until, excluded.due_at, excluded.accepted_at, NULL, false,
        inbox.forgotten_messages || inbox.message_id)
    WHERE inbox.forgotten AND excluded.message_id <> ALL (inbox.forgotten_messages || inbox.message_id)
    RETURNING command_id, operation, message_id, request_id, principal, body, reply_to, deadline, attempts, lease
    """
)

_CLAIM = text(
    """
    WITH due AS (
        SELECT command_id FROM inbox i
        WHERE finished_at IS NULL AND parked_at IS NULL AND due_at <= clock_timestamp()
            AND (lease_until IS NULL OR lease_until < clock_timestamp())
            AND (ordering_key IS NULL OR NOT EXISTS (
                SELECT 1 FROM inbox e WHERE e.ordering_key = i.ordering_key
                    AND e.finished_at IS NULL AND e.parked_at IS NULL AND e.sequence < i.sequence))
        ORDER BY due_at LIMIT :limit FOR UPDATE SKIP LOCKED
    )
    UPDATE inbox i SET attempts = attempts + 1, lease = gen_random_uuid(),
        lease_until = clock_timestamp() + make_interval(secs => :seconds)
    FROM due WHERE i.command_id = due.command_id
    RETURNING i.command_id, i.operation, i.message_id, i.request_id, i.principal, i.body, i.reply_to, i.deadline,
        i.attempts, i.lease, i.forgetting
    """
)


# Rows are locked in the order of their ids, as by whoever else locks several.
_RENEW = text(
    """
    WITH held AS (
        SELECT i.command_id FROM inbox i
        JOIN unnest(CAST(:ids AS uuid[]), CAST(:leases AS uuid[])) AS l (id, lease)
            ON i.command_id = l.id AND i.lease = l.lease
        WHERE finished_at IS NULL ORDER BY i.command_id FOR NO KEY UPDATE OF i
    )
    UPDATE inbox i SET lease_until = clock_timestamp() + make_interval(secs => :seconds)
    FROM held WHERE i.command_id = held.command_id
    RETURNING i.command_id
    """
)


_IS_HELD = and_(
    table.c.command_id == bindparam("id"),
    table.c.lease == bindparam("held_by"),
    table.c.finished_at.is_(None),
)
_FENCE = select(table.c.command_id).where(_IS_HELD).with_for_update(key_share=True)
_CHANGE = update(table).where(table.c.command_id == bindparam("id"))
_FINISH = _CHANGE.values(
    finished_at=func.clock_timestamp(),
    reply=bindparam("final_reply"),
    body=b"",
    lease=null(),
    lease_until=null(),
    last_error=null(),
)
_POSTPONE = _CHANGE.values(
    lease=null(),
    lease_until=null(),
    last_error=bindparam("error"),
    faults=0,
    due_at=func.clock_timestamp() + bindparam("pause", type_=Interval),
)
_RELEASE = update(table).where(_IS_HELD).values(lease=null(), lease_until=null())
_PURGE = delete(table).where(
    table.c.command_id.in_(
        select(table.c.command_id)
        .where(
            table.c.finished_at < func.clock_timestamp() - bindparam("age", type_=Interval),
            or_(table.c.forgotten, not_(table.c.keep_for_ever)),
        )
        .limit(bindparam("batch"))
        .with_for_update(skip_locked=True)
    )
)

_LOCK_ORDER = text("SELECT pg_advisory_xact_lock(hashtext('inbox'), hashtext(:key))")
_EARLIER = text(
    "SELECT 1 FROM inbox WHERE ordering_key = :key AND finished_at IS NULL AND parked_at IS NULL LIMIT 1"
)


async def lock_order(connection: AsyncConnection, ordering_key: str) -> None:
    """Until commit, no other transaction places a command of this key: `sequence` grows in commit order within it."""
    await connection.execute(_LOCK_ORDER, {"key": ordering_key})


async def accept(
    connection: AsyncConnection,
    command: Accepting,
    ordering_key: str | None,
    *,
    lease: bool,
    lease_seconds: float = LEASE_SECONDS,
) -> Leased | Existing | None:
    """Record a command, or tell what is known of it.

    Args:
        lease: take it at once, unless an earlier one of its key is open and not parked.

    Returns:
        Leased when it is new and may be driven now; None when it is new and waits; Existing otherwise.
    """
    may_drive = lease
    if ordering_key is not None:
        await lock_order(connection, ordering_key)
        earlier = await connection.execute(_EARLIER, {"key": ordering_key})
        may_drive = lease and earlier.first() is None
    lease_id = uuid4() if may_drive else None
    while True:
        row = await _insert(connection, command, ordering_key, lease_id, lease_seconds)
        if row is not None:
            return row if may_drive else None
        found = await connection.execute(
            text(
                "SELECT :message_id = ANY (forgotten_messages || message_id), body_hash, reply FROM inbox"
                " WHERE command_id = :command_id"
            ),
            {"command_id": command.command_id, "message_id": command.message_id},
        )
        existing = found.first()
        if existing is not None:  # else it was purged between the two statements
            return Existing(*existing)


async def _insert(
    connection: AsyncConnection,
    command: Accepting,
    ordering_key: str | None,
    lease: UUID | None,
    lease_seconds: float,
) -> Leased | None:
    """Record the command; None when its id is there already and was not forgotten."""
    inserted = await connection.execute(
        _INSERT,
        {
            "command_id": command.command_id,
            "operation": command.operation,
            "ordering_key": ordering_key,
            "message_id": command.message_id,
            "request_id": command.request_id,
            "principal": command.principal,
            "body": command.body,
            "body_hash": command.body_hash,
            "reply_to": command.reply_to,
            "deadline": command.deadline,
            "keep_for_ever": command.keep_for_ever,
            "attempts": 1 if lease else 0,
            "lease": lease,
            "seconds": lease_seconds,
        },
    )
    row = inserted.first()
    return Leased(*row) if row is not None else None


async def enqueue(connection: AsyncConnection, command: Enqueued) -> None:
    """Record an internal command in the caller's transaction. One that is there already is left alone."""
    await accept(
        connection,
        Accepting(
            command_id=command.command_id,
            operation=command.operation,
            message_id=str(command.command_id),
            request_id=str(command.command_id),
            principal=encode(command.principal),
            body=encode(command.body),
            body_hash=None,
            reply_to=None,
            deadline=0.0,
        ),
        command.ordering_key,
        lease=False,
    )


async def claim(
    connection: AsyncConnection, limit: int, lease_seconds: float = LEASE_SECONDS
) -> list[Leased]:
    """Lease up to `limit` commands that are due, neither leased nor parked, and first of their key."""
    rows = await connection.execute(
        _CLAIM,
        {"limit": limit, "seconds": lease_seconds},
    )
    return [Leased(*row) for row in rows]


async def renew(
    connection: AsyncConnection, held: Sequence[Leased], lease_seconds: float = LEASE_SECONDS
) -> set[UUID]:
    """Renew the leases; the ids of those that are still held."""
    rows = await connection.execute(
        _RENEW,
        {
            "seconds": lease_seconds,
            "ids": [command.command_id for command in held],
            "leases": [command.lease for command in held],
        },
    )
    return set(rows.scalars())


@asynccontextmanager
async def fenced(database: Database, command: Leased) -> AsyncIterator[AsyncConnection]:
    """A transaction that commits only while the lease is held.

    Raises:
        LeaseLost: it is not.
    """
    async with database.transaction() as connection:
        held = await connection.execute(
            _FENCE, {"id": command.command_id, "held_by": command.lease}
        )
        if held.first() is None:
            raise LeaseLost(str(command.command_id))
        yield connection


async def finish(connection: AsyncConnection, command: Leased, reply: bytes) -> None:
    """Store the final reply; the body is kept no longer. Called in a fenced transaction."""
    await connection.execute(_FINISH, {"id": command.command_id, "final_reply": reply})


async def postpone(
    connection: AsyncConnection, command: Leased, *, seconds: float, error: str
) -> None:
    """Give the lease back and drive again after `seconds`, for no fault of ours. Called in a fenced transaction."""
    await connection.execute(
        _POSTPONE,
        {"id": command.command_id, "pause": timedelta(seconds=seconds), "error": error},
    )


async def release(connection: AsyncConnection, commands: Iterable[Leased]) -> None:
    """Give leases back at shutdown, so that another process goes on at once."""
    for command in sorted(commands, key=lambda command: command.command_id):
        await connection.execute(_RELEASE, {"id": command.command_id, "held_by": command.lease})


async def purge(connection: AsyncConnection) -> int:
    """Delete a batch of what is kept no longer; how many."""
    deleted = await connection.execute(
        _PURGE, {"age": timedelta(hours=RETENTION_HOURS), "batch": PURGE_BATCH}
    )
    return deleted.rowcount


@dataclass(frozen=True, slots=True)
class Backlog:
    """Commands that are not final, by whether they are still driven. The ages are of the oldest, 0 without any."""

    open: int
    oldest_open_seconds: float
    parked: int
    longest_parked_seconds: float


_BACKLOG = text(
    """
    SELECT count(*) FILTER (WHERE parked_at IS NULL),
        coalesce(extract(epoch FROM clock_timestamp() - min(accepted_at) FILTER (WHERE parked_at IS NULL)), 0),
        count(*) FILTER (WHERE parked_at IS NOT NULL),
        coalesce(extract(epoch FROM clock_timestamp() - min(parked_at)), 0)
    FROM inbox WHERE finished_at IS NULL
    """
)


async def backlog(connection: AsyncConnection) -> Backlog:
    row = (await connection.execute(_BACKLOG)).one()
    return Backlog(int(row[0]), float(row[1]), int(row[2]), float(row[3]))
