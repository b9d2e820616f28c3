"""Businesses. Every statement is scoped by the tenant, but for `find_owner` and `tenants_of`, which say why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, Text, any_, bindparam, cast, delete, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.contracts.customer_views import BusinessView
from libs.contracts.customers import Business, CustomerStatus
from libs.contracts.exact_json import decode
from libs.contracts.masking import masked
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.chosen_rows import is_chosen
from libs.persistence.tables import UUID_TYPE
from services.onboarding.models import CustomerRecord, Verification
from services.onboarding.repository import verifications
from services.onboarding.repository.stored import read_stored
from services.onboarding.repository.tenant_rows import TenantRows, json_of
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import customers as table
from services.onboarding.tables import ein_holds, external_accounts, persons

_ROWS = TenantRows(table, table.c.customer_id, touched=True)
_REMOVE = tuple(
    delete(part).where(
        part.c.tenant == bindparam("tenant"), part.c.customer_id == bindparam("customer_id")
    )
    for part in (ein_holds, external_accounts, persons, table)
)
_OF_ANY_TENANT = select(
    table.c.tenant,
    table.c.customer_id,
    table.c.saga_id,
    table.c.status,
    cast(table.c.business, Text).label("business"),
    table.c.ein_last_four,
    cast(table.c.verification, Text).label("verification"),
    table.c.core_id,
    table.c.refused_by_provider,
    table.c.sequence,
    table.c.created_at,
    table.c.updated_at,
)
_OF_TENANT = _OF_ANY_TENANT.where(table.c.tenant == bindparam("tenant"))
_FIND = _OF_TENANT.where(table.c.customer_id == bindparam("customer_id"))
_LOCK = _FIND.with_for_update(key_share=True)
_WITH_STATUS = table.c.status == bindparam("status")
_COUNT = select(func.count()).select_from(table).where(table.c.tenant == bindparam("tenant"))
_COUNT_WITH_STATUS = _COUNT.where(_WITH_STATUS)
_NEWEST_FIRST = (table.c.created_at.desc(), table.c.customer_id.desc())
_IDS_OF_PAGE = (
    select(table.c.customer_id)
    .where(table.c.tenant == bindparam("tenant"))
    .order_by(*_NEWEST_FIRST)
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)


def _page(ids: Select[Any]) -> Select[Any]:
    """The rows of the page alone are read: those before it are passed over in the index that has their ids."""
    return _OF_TENANT.where(is_chosen(table.c.customer_id, ids)).order_by(*_NEWEST_FIRST)


_PAGE = _page(_IDS_OF_PAGE)
_PAGE_WITH_STATUS = _page(_IDS_OF_PAGE.where(_WITH_STATUS))
_OWNER = _OF_ANY_TENANT.where(table.c.customer_id == bindparam("customer_id"))
_BUSINESS = select(cast(table.c.business, Text)).where(
    table.c.tenant == bindparam("tenant"), table.c.customer_id == bindparam("customer_id")
)
_SET_BUSINESS = _ROWS.update.values(
    business=json_of("business_json"), ein_last_four=bindparam("last_four")
)
_SET_VERIFICATION = _ROWS.update.values(
    verification=json_of("verification_json"), identity_id=bindparam("verified_as")
)
_SET_STATUS = _ROWS.update.values(
    status=bindparam("new_status"), refused_by_provider=bindparam("refused")
)
_TENANTS = select(table.c.customer_id, table.c.tenant).where(
    table.c.customer_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
)
_PENDING = (
    select(table.c.customer_id)
    .where(table.c.customer_id == any_(bindparam("ids", type_=ARRAY(UUID_TYPE))))
    .where(table.c.status == CustomerStatus.PENDING.value)
)


class Customers:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def remove(self, connection: AsyncConnection, tenant: str, customer_id: UUID) -> None:
        """Take an application back, with all that belongs to it: no provider has received it."""
        for statement in _REMOVE:
            await connection.execute(statement, {"tenant": tenant, "customer_id": customer_id})

    async def find(
        self, connection: AsyncConnection, tenant: str, customer_id: UUID, *, lock: bool = False
    ) -> CustomerRecord | None:
        """A customer of the tenant; None: there is none with this id.

        Args:
            lock: until the transaction ends, so that what is read stays true.
        """
        rows = await connection.execute(
            _LOCK if lock else _FIND, {"tenant": tenant, "customer_id": customer_id}
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
        values: dict[str, Any] = {"tenant": tenant}
        count, page = _COUNT, _PAGE
        if status is not None:
            values["status"] = status.value
            count, page = _COUNT_WITH_STATUS, _PAGE_WITH_STATUS
        total = int((await connection.execute(count, values)).scalar_one())
        if offset >= total:
            return [], total  # without a walk over all of them
        rows = await connection.execute(page, values | {"limit": limit, "offset": offset})
        return [_record(row) for row in rows], total

    async def find_owner(
        self, connection: AsyncConnection, customer_id: UUID
    ) -> CustomerRecord | None:
        """Of any tenant: for what providers report and services ask, who know our id and no tenant."""
        rows = await connection.execute(_OWNER, {"customer_id": customer_id})
        row = rows.first()
        return None if row is None else _record(row)

    async def business(self, connection: AsyncConnection, customer: CustomerRecord) -> Business:
        """Opened."""
        rows = await connection.execute(
            _BUSINESS, {"tenant": customer.tenant, "customer_id": customer.customer_id}
        )
        return self._vault.open(Business, rows.scalar_one(), context_of(customer.customer_id))

    async def set_business(
        self, connection: AsyncConnection, customer: CustomerRecord, business: Business
    ) -> None:
        await self._set(
            connection,
            customer,
            _SET_BUSINESS,
            business_json=self._vault.seal(business, context_of(customer.customer_id)),
            last_four=masked(business.ein),
        )

    async def set_verification(
        self, connection: AsyncConnection, customer: CustomerRecord, verification: Verification
    ) -> None:
        await self._set(
            connection,
            customer,
            _SET_VERIFICATION,
            verification_json=verifications.to_column(verification),
            verified_as=verification.identity_id,
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
            _SET_STATUS,
            new_status=status.value,
            refused=refused_by_provider,
        )

    async def next_sequence(self, connection: AsyncConnection, customer: CustomerRecord) -> int:
        """The number of its next event, under the lock of its row."""
        return await _ROWS.next_sequence(connection, customer.tenant, customer.customer_id)

    async def _set(
        self, connection: AsyncConnection, customer: CustomerRecord, statement: Any, **values: Any
    ) -> None:
        await _ROWS.change(connection, statement, customer.tenant, customer.customer_id, **values)


async def tenants_of(connection: AsyncConnection, customer_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Of any tenant: for what providers report, who know our ids and no tenant. Ids that are not ours are left out."""
    rows = await connection.execute(_TENANTS, {"ids": list(customer_ids)})
    return {row.customer_id: row.tenant for row in rows}


async def pending_among(connection: AsyncConnection, customer_ids: Iterable[UUID]) -> set[UUID]:
    """Of any tenant, as `tenants_of`."""
    rows = await connection.execute(_PENDING, {"ids": list(customer_ids)})
    return set(rows.scalars())


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
