"""Commands that were accepted and are not final, for an operator to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.onboarding.repository.sagas import saga_ids_of

_OLDEST = text(
    "SELECT command_id, operation, ordering_key, accepted_at, attempts, last_error, due_at"
    " FROM inbox WHERE finished_at IS NULL ORDER BY accepted_at LIMIT :limit"
)
_HASTEN = text(
    "UPDATE inbox SET due_at = clock_timestamp()"
    " WHERE command_id = :id AND finished_at IS NULL AND parked_at IS NULL"
)
_LOCK = text(
    "SELECT coalesce(lease_until > clock_timestamp(), false) FROM inbox"
    " WHERE command_id = :id AND finished_at IS NULL FOR UPDATE"
)
_MESSAGE = text("SELECT message_id FROM inbox WHERE command_id = :id")
_IS_PENDING = text(
    "SELECT EXISTS (SELECT FROM customers"
    " WHERE saga_id = ANY(CAST(:sagas AS uuid[])) AND status = 'pending')"
)


@dataclass(frozen=True, slots=True)
class OpenCommand:
    """`ordering_key` is tenant/customer; an onboarding has none. `last_error` is the code of its last drive."""

    command_id: UUID
    operation: str
    ordering_key: str | None
    accepted_at: datetime
    attempts: int
    last_error: str | None
    next_attempt_at: datetime


async def oldest(connection: AsyncConnection, limit: int) -> list[OpenCommand]:
    rows = await connection.execute(_OLDEST, {"limit": limit})
    return [OpenCommand(*row) for row in rows]


async def hasten(connection: AsyncConnection, command_id: UUID) -> None:
    """Have an open command driven now rather than at the end of its pause."""
    await connection.execute(_HASTEN, {"id": command_id})


async def lock(connection: AsyncConnection, command_id: UUID) -> bool | None:
    """Whether a process drives the command now; None when it is not open. No process begins to until the commit."""
    rows = await connection.execute(_LOCK, {"id": command_id})
    is_driven: bool | None = rows.scalar_one_or_none()
    return is_driven


async def has_pending_customer(connection: AsyncConnection, command_id: UUID) -> bool:
    """Whether a customer that the command was about to make waits for it."""
    row = (await connection.execute(_MESSAGE, {"id": command_id})).first()
    if row is None:
        return False
    sagas = list(saga_ids_of(command_id, row.message_id))
    return bool((await connection.execute(_IS_PENDING, {"sagas": sagas})).scalar_one())
