"""What is measured of the wires as a whole."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def count_by_state(connection: AsyncConnection) -> dict[str, int]:
    rows = await connection.execute(text("SELECT state, count(*) FROM wires GROUP BY state"))
    return {state: int(count) for state, count in rows}


async def oldest_unknown_seconds(connection: AsyncConnection) -> float:
    """How long ago the first send of the oldest wire with unknown outcome began; 0 when there is none."""
    age = await connection.execute(
        text(
            "SELECT extract(epoch FROM clock_timestamp() - min(send_begun_at)) FROM wires"
            " WHERE state = 'pending_submission'"
        )
    )
    return float(age.scalar_one() or 0)
