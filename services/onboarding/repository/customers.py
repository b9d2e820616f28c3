"""Businesses. Every statement is scoped by the tenant, but for `find_owner` and `tenants_of`, which say why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customer_views import BusinessView
from libs.contracts.customers import Business, CustomerStatus
from libs.contracts.exact_json import decode
from services.onboarding.models import CustomerRecord, Verification, last_four
from services.onboarding.repository import verifications
from services.onboarding.repository.stored import read_stored
from services.onboarding.repository.table import Table
from services.onboarding.repository.vault import Vault

_TABLE = Table("customers", "customer_id", touch="updated_at = clock_timestamp()")
_COLUMNS = (
    "tenant, customer_id, saga_id, status, business::text, ein_last_four, verification::text,"
    " core_id, refused_by_provider, sequence, created_at, updated_at"
)


class Customers:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def add(
        self,
        connection: AsyncConnection,
        *,
        tenant: str,
        customer_id: UUID,
        saga_id: UUID,
        business: Business,
    ) -> None:
        """A new one, pending."""
        await connection.execute(
            text(
                "INSERT INTO customers"
                " (tenant, customer_id, saga_id, status, business, ein_last_four) VALUES"
                " (:tenant, :customer_id, :saga_id, 'pending', CAST(:business AS jsonb), :last_four)"
            ),
            {
                "tenant": tenant,
                "customer_id": customer_id,
                "saga_id": saga_id,
                "business": self._vault.seal(business, context_of(customer_id)),
                "last_four": last_four(business.ein),
            },
        )

    async def remove(self, connection: AsyncConnection, tenant: str, customer_id: UUID) -> None:
        """Take an application back, with all that belongs to it: no provider has heard of it."""
        for table in ("ein_holds", "external_accounts", "persons", "customers"):
            await connection.execute(
                text(f"DELETE FROM {table} WHERE tenant = :tenant AND customer_id = :customer_id"),  # noqa: S608
                {"tenant": tenant, "customer_id": customer_id},
            )

    async def find(
        self, connection: AsyncConnection, tenant: str, customer_id: UUID, *, lock: bool = False
    ) -> CustomerRecord | None:
        """Args:
        lock: until the transaction ends, so that what is read stays true.
        """
        suffix = "FOR NO KEY UPDATE" if lock else ""
        rows = await connection.execute(
            text(
                f"SELECT {_COLUMNS} FROM customers"  # noqa: S608 - constants
                f" WHERE tenant = :tenant AND customer_id = :customer_id {suffix}"
            ),
            {"tenant": tenant, "customer_id": customer_id},
        )
        row = rows.first()
        return None if row is None else _record(row)

    async def page(
        self,
        connection: AsyncConnection,
        tenant: str,
        status: CustomerStatus | None,
        *,
        limit: int,
        offset: int,
    ) -> tuple[list[CustomerRecord], int]:
        """The newest first, and how many there are in all."""
        values: dict[str, Any] = {"tenant": tenant, "limit": limit, "offset": offset}
        where = "tenant = :tenant"
        if status is not None:
            where, values["status"] = f"{where} AND status = :status", status.value
        total = await connection.execute(
            text(f"SELECT count(*) FROM customers WHERE {where}"),  # noqa: S608 - constants
            values,
        )
        rows = await connection.execute(
            text(
                f"SELECT {_COLUMNS} FROM customers WHERE {where}"  # noqa: S608 - constants
                " ORDER BY created_at DESC, customer_id DESC LIMIT :limit OFFSET :offset"
            ),
            values,
        )
        return [_record(row) for row in rows], int(total.scalar_one())

    async def find_owner(
        self, connection: AsyncConnection, customer_id: UUID
    ) -> CustomerRecord | None:
        """Of any tenant: for what providers report and services ask, who know our id and no tenant."""
        rows = await connection.execute(
            text(f"SELECT {_COLUMNS} FROM customers WHERE customer_id = :customer_id"),  # noqa: S608
            {"customer_id": customer_id},
        )
        row = rows.first()
        return None if row is None else _record(row)

    async def business(self, connection: AsyncConnection, customer: CustomerRecord) -> Business:
        """Opened."""
        rows = await connection.execute(
            text(
                "SELECT business::text FROM customers"
                " WHERE tenant = :tenant AND customer_id = :customer_id"
            ),
            {"tenant": customer.tenant, "customer_id": customer.customer_id},
        )
        return self._vault.open(Business, rows.scalar_one(), context_of(customer.customer_id))

    async def set_business(
        self, connection: AsyncConnection, customer: CustomerRecord, business: Business
    ) -> None:
        await self._set(
            connection,
            customer,
            "business = CAST(:value AS jsonb), ein_last_four = :last_four",
            value=self._vault.seal(business, context_of(customer.customer_id)),
            last_four=last_four(business.ein),
        )

    async def set_verification(
        self, connection: AsyncConnection, customer: CustomerRecord, verification: Verification
    ) -> None:
        await self._set(
            connection,
            customer,
            "verification = CAST(:value AS jsonb), identity_id = :identity_id",
            value=verifications.to_column(verification),
            identity_id=verification.identity_id,
        )

    async def set_status(
        self,
        connection: AsyncConnection,
        customer: CustomerRecord,
        status: CustomerStatus,
        *,
        refused_by_provider: bool = False,
    ) -> None:
        await self._set(
            connection,
            customer,
            "status = :value, refused_by_provider = :refused",
            value=status.value,
            refused=refused_by_provider,
        )

    async def set_core_id(
        self, connection: AsyncConnection, customer: CustomerRecord, core_id: str
    ) -> None:
        await self._set(connection, customer, "core_id = :value", value=core_id)

    async def next_sequence(self, connection: AsyncConnection, customer: CustomerRecord) -> int:
        """The number of its next event, under the lock of its row."""
        return await _TABLE.next_sequence(connection, customer.tenant, customer.customer_id)

    async def _set(
        self, connection: AsyncConnection, customer: CustomerRecord, change: str, **values: Any
    ) -> None:
        await _TABLE.change(connection, customer.tenant, customer.customer_id, change, **values)


async def tenants_of(connection: AsyncConnection, customer_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Of any tenant: for what providers report, who know our ids and no tenant. Ids that are not ours are left out."""
    rows = await connection.execute(
        text("SELECT customer_id, tenant FROM customers WHERE customer_id = ANY(:ids)"),
        {"ids": list(customer_ids)},
    )
    return {row.customer_id: row.tenant for row in rows}


def _record(row: Row[Any]) -> CustomerRecord:
    return CustomerRecord(
        tenant=row.tenant,
        customer_id=row.customer_id,
        saga_id=row.saga_id,
        status=CustomerStatus(row.status),
        business=read_stored(BusinessView, decode(row.business)),
        ein_last_four=row.ein_last_four,
        verification=verifications.from_column(row.verification),
        core_id=row.core_id,
        refused_by_provider=row.refused_by_provider,
        sequence=row.sequence,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def context_of(customer_id: UUID) -> str:
    """What the sealed fields of the row are bound to."""
    return f"customers/{customer_id}"
