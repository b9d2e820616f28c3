"""Which customer of a tenant holds which EIN (interface §5: unique while not denied or canceled).

The primary key decides a race: the second to insert waits for the first to commit, and finds it taken. While a lookup
key is replaced an EIN is held by a digest of each key, so that a process with either of them finds it taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import all_, any_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, insert

from libs.persistence.async_engine import AsyncConnection
from services.onboarding.tables import ein_holds

EIN_TAKEN = "A customer with this EIN exists already."

_DIGESTS = bindparam("digests", type_=ARRAY(BYTEA))
_TAKE = insert(ein_holds).on_conflict_do_nothing()
_HOLDERS = (
    select(ein_holds.c.customer_id)
    .where(ein_holds.c.tenant == bindparam("tenant"), ein_holds.c.ein_digest == any_(_DIGESTS))
    .distinct()
)
_RELEASE = delete(ein_holds).where(
    ein_holds.c.tenant == bindparam("tenant"),
    ein_holds.c.customer_id == bindparam("customer_id"),
)
_KEEP_ONLY = _RELEASE.where(ein_holds.c.ein_digest != all_(_DIGESTS))


async def take(
    connection: AsyncConnection, tenant: str, customer_id: UUID, digests: Sequence[bytes]
) -> list[UUID]:
    """Hold the EIN for the customer, unless another customer does. Returns the customers that hold it.

    It is taken when that is this customer alone. The list is empty when the other one has just let go of the EIN.
    """
    for digest in sorted(digests):
        row = {"tenant": tenant, "ein_digest": digest, "customer_id": customer_id}
        await connection.execute(_TAKE, row)
    holders = await connection.execute(_HOLDERS, {"tenant": tenant, "digests": list(digests)})
    return list(holders.scalars())


async def keep_only(
    connection: AsyncConnection, tenant: str, customer_id: UUID, digests: Sequence[bytes]
) -> None:
    """Let go of every other EIN of the customer."""
    await connection.execute(
        _KEEP_ONLY, {"tenant": tenant, "customer_id": customer_id, "digests": list(digests)}
    )


async def release(connection: AsyncConnection, tenant: str, customer_id: UUID) -> None:
    """The customer is denied or canceled: its EIN is free."""
    await connection.execute(_RELEASE, {"tenant": tenant, "customer_id": customer_id})
