"""Commands that were accepted and are not final, for an operator to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


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
    rows = await connection.execute(
        text(
            "SELECT command_id, operation, ordering_key, accepted_at, attempts, last_error, due_at"
            " FROM inbox WHERE finished_at IS NULL ORDER BY accepted_at LIMIT :limit"
        ),
        {"limit": limit},
    )
    return [OpenCommand(*row) for row in rows]
