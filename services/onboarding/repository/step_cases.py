"""Steps that an operator has to see to: refused compensations and outcomes that are not known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.exact_json import encode
from libs.providers.outcomes import Reason

Resolution = Literal["absent", "done", "refused"]

_REFUSED_COMPENSATIONS = text(
    "SELECT saga_id, name, tenant, customer_id, operation, refusal_reason, refusal_code,"
    " recorded_at FROM saga_steps"
    " WHERE compensation AND state = 'refused' AND settled_at IS NULL"
    " ORDER BY recorded_at DESC LIMIT :limit"
)
_SETTLE = text(
    "UPDATE saga_steps SET settled_at = clock_timestamp() WHERE saga_id = :saga_id"
    " AND name = :name AND compensation AND state = 'refused' AND settled_at IS NULL"
)
_UNKNOWN = text(
    """
    SELECT saga_id, name, tenant, customer_id, operation, command_id, first_sent_at, last_attempt_at
    FROM saga_steps WHERE state = 'intended' AND first_sent_at IS NOT NULL
        AND (resolution IS NULL OR resolution = 'absent')
    ORDER BY first_sent_at LIMIT :limit
    """
)
_FIND_UNKNOWN = text(
    """
    SELECT saga_id, name, tenant, customer_id, operation, command_id, first_sent_at, last_attempt_at
    FROM saga_steps WHERE saga_id = :saga_id AND name = :name AND state = 'intended'
        AND first_sent_at IS NOT NULL AND (resolution IS NULL OR resolution = 'absent')
    FOR NO KEY UPDATE
    """
)
_RESOLVE = text(
    """
    UPDATE saga_steps SET resolution = :resolution, resolved_by = :by, resolution_reason = :reason,
        resolved_at = clock_timestamp(), recorded_at = CASE WHEN :is_final THEN clock_timestamp() END,
        result = CAST(:result AS jsonb), refusal_reason = :refusal_reason,
        refusal_code = :refusal_code,
        first_sent_at = CASE WHEN :resolution = 'absent' THEN NULL ELSE first_sent_at END,
        last_sent_at = CASE WHEN :resolution = 'absent' THEN NULL ELSE last_sent_at END
    WHERE saga_id = :saga_id AND name = :name
    """
)
RESOLVED_CODE = "resolved_by_operator"
"""Stands in the place of the provider's code when an operator says that the provider refused."""


@dataclass(frozen=True, slots=True)
class RefusedCompensation:
    """Something that could not be taken back: the two providers disagree until an operator has seen to it."""

    saga_id: UUID
    step: str
    tenant: str
    customer_id: UUID
    operation: str
    refusal_reason: str
    refusal_code: str
    refused_at: datetime


@dataclass(frozen=True, slots=True)
class UnknownStep:
    """A step that was sent and of which it is not known whether it happened.

    Args:
        command_id: the command that attempted it last; None when no process of this release has.
        last_asked_at: when the provider was last sent the step or asked about it.
    """

    saga_id: UUID
    step: str
    tenant: str
    customer_id: UUID
    operation: str
    command_id: UUID | None
    first_sent_at: datetime
    last_asked_at: datetime


async def refused_compensations(
    connection: AsyncConnection, limit: int
) -> list[RefusedCompensation]:
    """The newest first."""
    rows = await connection.execute(_REFUSED_COMPENSATIONS, {"limit": limit})
    return [RefusedCompensation(*row) for row in rows]


async def settle(connection: AsyncConnection, saga_id: UUID, name: str) -> bool:
    """An operator has seen to a refused compensation; false when there is none of that name to see to."""
    settled = await connection.execute(_SETTLE, {"saga_id": saga_id, "name": name})
    return settled.rowcount == 1


async def unknown(connection: AsyncConnection, limit: int) -> list[UnknownStep]:
    """The oldest first; those that are being attempted at the moment are among them."""
    rows = await connection.execute(_UNKNOWN, {"limit": limit})
    return [UnknownStep(*row) for row in rows]


async def find_unknown(connection: AsyncConnection, saga_id: UUID, name: str) -> UnknownStep | None:
    """One of them, its row locked."""
    rows = await connection.execute(_FIND_UNKNOWN, {"saga_id": saga_id, "name": name})
    row = rows.first()
    return None if row is None else UnknownStep(*row)


async def resolve(
    connection: AsyncConnection,
    step: UnknownStep,
    resolution: Resolution,
    result: Any,
    *,
    is_final: bool,
    by: str,
    reason: str,
) -> None:
    """Store an operator's decision on a step whose row is locked; the saga acts on it when it next runs.

    Args:
        result: the provider's answer; None unless the step is done.
        is_final: no drive of the saga follows.
    """
    is_refused = resolution == "refused"
    await connection.execute(
        _RESOLVE,
        {
            "saga_id": step.saga_id,
            "name": step.step,
            "resolution": resolution,
            "by": by,
            "reason": reason,
            "is_final": is_final,
            "result": None if resolution != "done" else encode(result).decode(),
            "refusal_reason": Reason.PROVIDER_REFUSED.value if is_refused else None,
            "refusal_code": RESOLVED_CODE if is_refused else None,
        },
    )
