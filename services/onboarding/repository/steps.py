"""Saga steps: when each was sent, by the database's clock, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import decode, encode
from libs.providers.outcomes import Reason
from libs.providers.writing import Earlier, with_lost_history

PURGE_BATCH = 1000
LONGEST_CODE = 64
TIME_ORDERED = 7
"""The version of the UUIDs that are made anew for each request."""

_INTEND = text(
    """
    INSERT INTO saga_steps (saga_id, name, tenant, customer_id, operation, idempotency_key, compensation, command_id)
    VALUES (:saga_id, :name, :tenant, :customer_id, :operation, :key, :compensation, :command_id)
    ON CONFLICT (saga_id, name) DO NOTHING
    RETURNING lost_history_seconds() AS lost_seconds, lost_history_began_seconds() AS lost_began_seconds,
        clock_timestamp() AS now,
        (SELECT extract(epoch FROM clock_timestamp() - accepted_at)::double precision
            FROM inbox i WHERE i.command_id = :command_id) AS accepted_seconds
    """
)
_FIND = text(
    """
    SELECT state, resolution, result::text, refusal_code, last_sent_at,
        coalesce(refusal_reason, CASE refusal_code WHEN 'already_linked' THEN 'already_linked'
            ELSE 'provider_refused' END) AS refusal_reason, -- null: recorded by the release before
        extract(epoch FROM clock_timestamp() - resolved_at)::double precision AS resolved_seconds_ago,
        extract(epoch FROM clock_timestamp() - first_sent_at)::double precision AS first_sent_seconds_ago,
        extract(epoch FROM clock_timestamp() - last_sent_at)::double precision AS last_sent_seconds_ago,
        lost_history_seconds() AS lost_seconds, lost_history_began_seconds() AS lost_began_seconds,
        clock_timestamp() AS now,
        (SELECT extract(epoch FROM clock_timestamp() - accepted_at)::double precision
            FROM inbox i WHERE i.command_id = :command_id) AS accepted_seconds
    FROM saga_steps WHERE saga_id = :saga_id AND name = :name FOR NO KEY UPDATE
    """
)
_ATTEMPT = text(
    """
    UPDATE saga_steps SET first_sent_at = coalesce(first_sent_at, clock_timestamp()),
        last_sent_at = clock_timestamp(), last_attempt_at = clock_timestamp(), command_id = :command_id
    WHERE saga_id = :saga_id AND name = :name
    """
)
_MAY_BE_OLDER = text(
    "UPDATE saga_steps SET first_sent_at = CASE WHEN CAST(:ago AS double precision) = 'infinity' THEN '-infinity'"
    " ELSE least(first_sent_at, clock_timestamp() - make_interval(secs => :ago)) END"
    " WHERE saga_id = :saga_id AND name = :name"
)
_NOT_SENT_AGAIN = text(
    "UPDATE saga_steps SET last_sent_at = :last_sent_at"
    " WHERE saga_id = :saga_id AND name = :name AND state = 'intended'"
)
_WITHDRAW = text(
    "DELETE FROM saga_steps"
    " WHERE saga_id = :saga_id AND name = :name AND state = 'intended' AND resolved_at IS NULL"
)
_WITHDRAW_RESOLVED = text(
    "UPDATE saga_steps SET first_sent_at = NULL, last_sent_at = NULL"
    " WHERE saga_id = :saga_id AND name = :name AND state = 'intended'"
)
_SET_DONE = text(
    "UPDATE saga_steps SET state = 'done', result = CAST(:result AS jsonb),"
    " recorded_at = clock_timestamp() WHERE saga_id = :saga_id AND name = :name"
)
_SET_REFUSED = text(
    "UPDATE saga_steps SET state = 'refused', refusal_reason = :reason, refusal_code = :code,"
    " recorded_at = clock_timestamp() WHERE saga_id = :saga_id AND name = :name"
)
_OF_ANOTHER_SAGA = text(
    """
    SELECT EXISTS (SELECT FROM saga_steps s WHERE s.customer_id = :customer_id AND s.tenant = :tenant
        AND s.saga_id <> :saga_id
        AND (s.state = 'intended' AND s.first_sent_at IS NOT NULL
                AND (s.resolution IS NULL OR s.resolution = 'absent')
            OR EXISTS (SELECT FROM inbox i WHERE i.command_id = s.command_id AND i.finished_at IS NULL
                AND (s.state = 'intended' OR i.parked_at IS NOT NULL))))
    """
)
_COMMAND_OF = text(
    "SELECT command_id FROM saga_steps WHERE saga_id = :saga_id AND tenant = :tenant"
    " AND command_id IS NOT NULL ORDER BY last_attempt_at DESC LIMIT 1"
)
_PURGE = text(
    """
    DELETE FROM saga_steps WHERE (saga_id, name) IN (
        SELECT s.saga_id, s.name FROM saga_steps s
        WHERE s.recorded_at < clock_timestamp() - make_interval(days => :days)
            AND (s.settled_at IS NOT NULL OR NOT (s.compensation AND s.state = 'refused'))
            AND NOT EXISTS (SELECT 1 FROM customers c
                WHERE c.customer_id = s.customer_id AND c.status = 'pending')
            AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.finished_at IS NULL
                AND i.ordering_key = s.tenant || '/' || CAST(s.customer_id AS text))
        ORDER BY s.recorded_at LIMIT :batch FOR UPDATE OF s SKIP LOCKED)
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SagaName:
    """Which saga a step belongs to, and for whom it acts."""

    saga_id: UUID
    tenant: str
    customer_id: UUID
    operation: str


@dataclass(frozen=True, slots=True)
class Done:
    """The provider's answer is known.

    Args:
        is_recorded: False when an operator gave it and the saga has not taken it over yet.
    """

    result: Any
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class StepRefusal:
    """The provider refused; `is_recorded` as of `Done`."""

    reason: Reason
    code: str
    is_recorded: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt at the step begins with this commit.

    Args:
        earlier: sends before this attempt; None when certainly nothing was sent.
        last_sent_at: of the last one of these.
    """

    earlier: Earlier | None
    last_sent_at: datetime | None


async def begin(
    connection: AsyncConnection,
    saga: SagaName,
    name: str,
    idempotency_key: UUID,
    *,
    compensation: bool,
    command_id: UUID,
) -> Done | StepRefusal | Begun:
    """Record that an attempt begins, or find what came of the step.

    A first send is one of which nothing is recorded. While the database may have gone back to an earlier state, a send
    may be missing in it, of before its present life: then nothing counts as a first send.
    """
    row_id = {"saga_id": saga.saga_id, "name": name}
    inserted = await connection.execute(
        _INTEND,
        {
            **row_id,
            "tenant": saga.tenant,
            "customer_id": saga.customer_id,
            "operation": saga.operation,
            "key": idempotency_key,
            "compensation": compensation,
            "command_id": command_id,
        },
    )
    if (new := inserted.first()) is not None:
        lost = _lost(command_id, new)
        await _keep_lost(connection, row_id, lost)
        return _begun(None, None, lost, new.now)
    row = (await connection.execute(_FIND, {**row_id, "command_id": command_id})).one()
    if row.state == "done" or row.resolution == "done":
        return Done(decode(row.result), row.state == "done")
    if row.state == "refused" or row.resolution == "refused":
        return StepRefusal(Reason(row.refusal_reason), row.refusal_code, row.state == "refused")
    await connection.execute(_ATTEMPT, {**row_id, "command_id": command_id})
    known = None
    if row.last_sent_at is not None:
        known = Earlier(row.first_sent_seconds_ago, row.last_sent_seconds_ago)
    lost = None if _is_absent_since(row) else _lost(command_id, row)
    await _keep_lost(connection, row_id, lost)
    return _begun(known, row.last_sent_at, lost, row.now)


async def _keep_lost(
    connection: AsyncConnection, row_id: dict[str, Any], lost: Earlier | None
) -> None:
    """What may have been sent in a lost history counts also when that is no longer in doubt."""
    if lost is not None:
        await connection.execute(_MAY_BE_OLDER, {**row_id, "ago": lost.first_sent_seconds_ago})


def _is_absent_since(row: Row[Any]) -> bool:
    """Whether an operator has found that the provider holds nothing of the step, in this life of the database."""
    return (
        row.resolution == "absent"
        and row.last_sent_at is None
        and row.lost_seconds is not None
        and row.resolved_seconds_ago <= row.lost_seconds
    )


def _lost(command_id: UUID, row: Row[Any]) -> Earlier | None:
    """What may have been sent in a history that the database lost; None: it lost none.

    A command without an Idempotency-Key has an id of its own, and is older than no send of it. One with a key may have
    been accepted, sent and lost before it was accepted now.
    """
    if row.lost_seconds is None:
        return None
    first = row.lost_began_seconds
    if command_id.version == TIME_ORDERED:
        first = min(first, row.accepted_seconds or 0.0)
    return Earlier(first, row.lost_seconds)


def _begun(
    known: Earlier | None, last_sent_at: datetime | None, lost: Earlier | None, now: datetime
) -> Begun:
    earlier = with_lost_history(known, lost)
    if earlier is not None and (
        known is None or earlier.last_sent_seconds_ago < known.last_sent_seconds_ago
    ):
        last_sent_at = now - timedelta(seconds=earlier.last_sent_seconds_ago)
    return Begun(earlier, last_sent_at)


async def not_sent_again(
    connection: AsyncConnection, saga: SagaName, name: str, last_sent_at: datetime | None
) -> None:
    """The attempt that was begun sent nothing that may still arrive: put the time of the last send back."""
    await connection.execute(
        _NOT_SENT_AGAIN,
        {"saga_id": saga.saga_id, "name": name, "last_sent_at": last_sent_at},
    )


async def withdraw(connection: AsyncConnection, saga: SagaName, name: str) -> None:
    """The first send was certainly not carried out. What an operator decided on the step before stays on record."""
    row_id = {"saga_id": saga.saga_id, "name": name}
    await connection.execute(_WITHDRAW, row_id)
    await connection.execute(_WITHDRAW_RESOLVED, row_id)


async def set_done(connection: AsyncConnection, saga: SagaName, name: str, result: Any) -> None:
    await connection.execute(
        _SET_DONE, {"saga_id": saga.saga_id, "name": name, "result": encode(result).decode()}
    )


async def set_refused(
    connection: AsyncConnection, saga: SagaName, name: str, reason: Reason, code: str
) -> None:
    """Args:
    code: the provider's own.
    """
    await connection.execute(
        _SET_REFUSED,
        {
            "saga_id": saga.saga_id,
            "name": name,
            "reason": reason.value,
            "code": code[:LONGEST_CODE],
        },
    )


async def is_another_unfinished(
    connection: AsyncConnection, tenant: str, customer_id: UUID, saga_id: UUID
) -> bool:
    """Whether a step of another saga of the customer has an outcome that is not known, or that it has not recorded."""
    found = await connection.execute(
        _OF_ANOTHER_SAGA, {"tenant": tenant, "customer_id": customer_id, "saga_id": saga_id}
    )
    return bool(found.scalar_one())


async def command_of(connection: AsyncConnection, tenant: str, saga_id: UUID) -> UUID | None:
    """The command that attempted a step of the saga last."""
    found = await connection.execute(_COMMAND_OF, {"saga_id": saga_id, "tenant": tenant})
    command_id: UUID | None = found.scalar_one_or_none()
    return command_id


async def purge(connection: AsyncConnection, *, days: int) -> int:
    """Delete a batch of steps whose outcome was recorded so many days ago; how many.

    Kept are those of a saga that may still run again, which is one of a customer that is pending or has a command open;
    and refused compensations that no operator has seen to.
    """
    deleted = await connection.execute(_PURGE, {"days": days, "batch": PURGE_BATCH})
    return deleted.rowcount
