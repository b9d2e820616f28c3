"""The service's own tables, beside the outbox and the feed cursor."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_NEXT = text(
    "INSERT INTO resource_sequences AS held (kind, resource_id, sequence) VALUES (:kind, :resource_id, 1)"
    " ON CONFLICT (kind, resource_id) DO UPDATE SET sequence = held.sequence + 1 RETURNING sequence"
)


async def next_sequence(connection: AsyncConnection, kind: str, resource_id: str) -> int:
    """1, 2, 3 … per resource. The resource's row stays locked until the transaction ends (interface §8)."""
    row = await connection.execute(_NEXT, {"kind": kind, "resource_id": resource_id})
    return int(row.scalar_one())
