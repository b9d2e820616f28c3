"""Persons of businesses, scoped by tenant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Text, any_, bindparam, cast, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import UUID_TYPE
from services.onboarding.models import PersonDetails, PersonRecord, Verification
from services.onboarding.repository import verifications
from services.onboarding.repository.tenant_rows import (
    TenantRows,
    customer_by,
    find_customer,
    json_of,
)
from services.onboarding.repository.vault import Vault
from services.onboarding.tables import persons as table

_ROWS = TenantRows(table, table.c.person_id)
_CUSTOMER = customer_by(table, table.c.person_id)
_IDS = any_(bindparam("ids", type_=ARRAY(UUID_TYPE)))
_DETAILS = select(table.c.person_id, cast(table.c.details, Text).label("details")).where(
    table.c.tenant == bindparam("tenant"), table.c.person_id == _IDS
)
_SET_DETAILS = _ROWS.update.values(details=json_of("details_json"))
_SET_VERIFICATION = _ROWS.update.values(
    verification=json_of("verification_json"), identity_id=bindparam("verified_as")
)
_SET_CORE_ID = _ROWS.update.values(core_id=bindparam("at_core_as"))


class Persons:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, person_id: UUID
    ) -> UUID | None:
        """The business that the tenant's person belongs to."""
        return await find_customer(connection, _CUSTOMER, tenant, person_id)

    async def details(
        self, connection: AsyncConnection, tenant: str, person_ids: Iterable[UUID]
    ) -> dict[UUID, PersonDetails]:
        """Opened."""
        rows = await connection.execute(_DETAILS, {"tenant": tenant, "ids": list(person_ids)})
        return {
            row.person_id: self._vault.open(
                PersonDetails, row.details, context_of(tenant, row.person_id)
            )
            for row in rows
        }

    async def set_details(
        self, connection: AsyncConnection, person: PersonRecord, details: PersonDetails
    ) -> None:
        sealed = self._vault.seal(details, context_of(person.tenant, person.person_id))
        await self._set(connection, person, _SET_DETAILS, details_json=sealed)

    async def set_verification(
        self, connection: AsyncConnection, person: PersonRecord, verification: Verification
    ) -> None:
        await self._set(
            connection,
            person,
            _SET_VERIFICATION,
            verification_json=verifications.to_column(verification),
            verified_as=verification.identity_id,
        )

    async def set_core_id(
        self, connection: AsyncConnection, person: PersonRecord, core_id: str
    ) -> None:
        """Core banking has another record of the person from now on."""
        await self._set(connection, person, _SET_CORE_ID, at_core_as=core_id)

    async def next_sequence(self, connection: AsyncConnection, person: PersonRecord) -> int:
        """The number of its next event, under the lock of its row."""
        return await _ROWS.next_sequence(connection, person.tenant, person.person_id)

    async def _set(
        self, connection: AsyncConnection, person: PersonRecord, statement: Any, **values: Any
    ) -> None:
        await _ROWS.change(connection, statement, person.tenant, person.person_id, **values)


def context_of(tenant: str, person_id: UUID) -> str:
    """What the sealed fields of the row are bound to."""
    return f"persons/{tenant}/{person_id}"
