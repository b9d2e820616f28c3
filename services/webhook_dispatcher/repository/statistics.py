"""What is measured of the deliveries as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True)
class Measured:
    due: int
    oldest_due_at: datetime | None
    in_flight: int


async def measure(connection: AsyncConnection, now: datetime) -> Measured:
    rows = await connection.execute(
        text(
            "SELECT due.count, due.oldest, (SELECT count(*) FROM delivery WHERE claim IS NOT NULL)"
            " FROM (SELECT count(*) AS count, min(due_at) AS oldest FROM delivery"
            " WHERE state = 'pending' AND claim IS NULL AND due_at <= :now) AS due"
        ),
        {"now": now},
    )
    return Measured(*rows.one())
