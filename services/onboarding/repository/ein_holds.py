"""Which customer of a tenant holds which EIN (interface §5: unique while not denied or canceled).

The primary key decides a race: the second to insert waits for the first to commit, and finds it taken.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def take(
    connection: AsyncConnection, tenant: str, customer_id: UUID, ein_digest: bytes
) -> bool:
    """Hold the EIN for the customer; false when another customer holds it."""
    values = {"tenant": tenant, "customer_id": customer_id, "digest": ein_digest}
    await connection.execute(
        text(
            "INSERT INTO ein_holds (tenant, ein_digest, customer_id)"
            " VALUES (:tenant, :digest, :customer_id) ON CONFLICT DO NOTHING"
        ),
        values,
    )
    holder = await connection.execute(
        text("SELECT customer_id FROM ein_holds WHERE tenant = :tenant AND ein_digest = :digest"),
        values,
    )
    return bool(holder.scalar_one_or_none() == customer_id)


async def keep_only(
    connection: AsyncConnection, tenant: str, customer_id: UUID, ein_digest: bytes
) -> None:
    """Let go of every other EIN of the customer."""
    await connection.execute(
        text(
            "DELETE FROM ein_holds WHERE tenant = :tenant AND customer_id = :customer_id"
            " AND ein_digest <> :digest"
        ),
        {"tenant": tenant, "customer_id": customer_id, "digest": ein_digest},
    )


async def release(connection: AsyncConnection, tenant: str, customer_id: UUID) -> None:
    """The customer is denied or canceled: its EIN is free."""
    await connection.execute(
        text("DELETE FROM ein_holds WHERE tenant = :tenant AND customer_id = :customer_id"),
        {"tenant": tenant, "customer_id": customer_id},
    )
