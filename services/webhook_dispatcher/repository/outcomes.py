"""What a command did, recorded in the transaction of it, so that a second drive of it does nothing more.

Purged with the command's row of the inbox.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def find(connection: AsyncConnection, command_id: UUID) -> bytes | None:
    found = await connection.execute(
        text("SELECT data FROM outcome WHERE command_id = :id"), {"id": command_id}
    )
    return found.scalar_one_or_none()


async def record(connection: AsyncConnection, command_id: UUID, data: bytes) -> None:
    """Record it, in place of what was recorded before."""
    await connection.execute(
        text(
            "INSERT INTO outcome (command_id, data) VALUES (:id, :data)"
            " ON CONFLICT (command_id) DO UPDATE SET data = excluded.data"
        ),
        {"id": command_id, "data": data},
    )
