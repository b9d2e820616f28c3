"""Which customer of a tenant holds which EIN (interface §5: unique while not denied or canceled).

The primary key decides a race: the second to insert waits for the first to commit, and finds it taken.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from services.onboarding.tables import ein_holds

_TAKE = insert(ein_holds).on_conflict_do_nothing()
_HOLDER = select(ein_holds.c.customer_id).where(
    ein_holds.c.tenant == bindparam("tenant"),
    ein_holds.c.ein_digest == bindparam("ein_digest"),
)
_RELEASE = delete(ein_holds).where(
    ein_holds.c.tenant == bindparam("tenant"),
    ein_holds.c.customer_id == bindparam("customer_id"),
)
_KEEP_ONLY = _RELEASE.where(ein_holds.c.ein_digest != bindparam("ein_digest"))


async def take(
    connection: AsyncConnection, tenant: str, customer_id: UUID, ein_digest: bytes
) -> bool:
    """Hold the EIN for the customer; false when another customer holds it."""
    row = {"tenant": tenant, "ein_digest": ein_digest}
    await connection.execute(_TAKE, {**row, "customer_id": customer_id})
    holder = await connection.execute(_HOLDER, row)
    return bool(holder.scalar_one_or_none() == customer_id)


async def keep_only(
    connection: AsyncConnection, tenant: str, customer_id: UUID, ein_digest: bytes
) -> None:
    """Let go of every other EIN of the customer."""
    await connection.execute(
        _KEEP_ONLY, {"tenant": tenant, "customer_id": customer_id, "ein_digest": ein_digest}
    )


async def release(connection: AsyncConnection, tenant: str, customer_id: UUID) -> None:
    """The customer is denied or canceled: its EIN is free."""
    await connection.execute(_RELEASE, {"tenant": tenant, "customer_id": customer_id})
