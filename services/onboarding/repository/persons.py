"""Persons of businesses, scoped by tenant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.onboarding.models import PersonDetails, PersonRecord, Verification
from services.onboarding.repository import verifications
from services.onboarding.repository.table import Table
from services.onboarding.repository.vault import Vault

_TABLE = Table("persons", "person_id")
_COLUMNS = (
    "tenant, person_id, customer_id, details->>'first_name' AS first_name,"
    " details->>'last_name' AS last_name, CAST(details->>'controller' AS boolean) AS controller,"
    " CAST(details->>'ownership_percentage' AS numeric) AS ownership_percentage,"
    " verification::text, core_id, sequence"
)


class Persons:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def add(
        self,
        connection: AsyncConnection,
        *,
        tenant: str,
        customer_id: UUID,
        persons: Sequence[tuple[UUID, PersonDetails]],
    ) -> bool:
        """Add them in the order given; false when the tenant has a person with one of the ids already."""
        numbered = list(enumerate(persons))
        for position, (person_id, details) in sorted(numbered, key=lambda item: item[1][0]):
            # By id, so that two applications with the same ids wait for one another and never for each other.
            added = await connection.execute(
                text(
                    "INSERT INTO persons (tenant, person_id, customer_id, position, details) VALUES"
                    " (:tenant, :person_id, :customer_id, :position, CAST(:details AS jsonb))"
                    " ON CONFLICT (tenant, person_id) DO NOTHING"
                ),
                {
                    "tenant": tenant,
                    "person_id": person_id,
                    "customer_id": customer_id,
                    "position": position,
                    "details": self._vault.seal(details, context_of(tenant, person_id)),
                },
            )
            if added.rowcount == 0:
                return False
        return True

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, person_id: UUID
    ) -> UUID | None:
        """The business that the tenant's person belongs to."""
        return await _TABLE.customer_of(connection, tenant, "person_id", person_id)

    async def of_customers(
        self, connection: AsyncConnection, tenant: str, customer_ids: Iterable[UUID]
    ) -> list[PersonRecord]:
        """In the order in which each application named them."""
        rows = await connection.execute(
            text(
                f"SELECT {_COLUMNS} FROM persons"  # noqa: S608 - constants
                " WHERE tenant = :tenant AND customer_id = ANY(:ids) ORDER BY customer_id, position"
            ),
            {"tenant": tenant, "ids": list(customer_ids)},
        )
        return [_record(row) for row in rows]

    async def details(
        self, connection: AsyncConnection, tenant: str, person_ids: Iterable[UUID]
    ) -> dict[UUID, PersonDetails]:
        """Opened."""
        rows = await connection.execute(
            text(
                "SELECT person_id, details::text FROM persons"
                " WHERE tenant = :tenant AND person_id = ANY(:ids)"
            ),
            {"tenant": tenant, "ids": list(person_ids)},
        )
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
        await self._set(connection, person, "details = CAST(:value AS jsonb)", value=sealed)

    async def set_verification(
        self, connection: AsyncConnection, person: PersonRecord, verification: Verification
    ) -> None:
        await self._set(
            connection,
            person,
            "verification = CAST(:value AS jsonb), identity_id = :identity_id",
            value=verifications.to_column(verification),
            identity_id=verification.identity_id,
        )

    async def set_core_id(
        self, connection: AsyncConnection, person: PersonRecord, core_id: str
    ) -> None:
        await self._set(connection, person, "core_id = :value", value=core_id)

    async def next_sequence(self, connection: AsyncConnection, person: PersonRecord) -> int:
        """The number of its next event, under the lock of its row."""
        return await _TABLE.next_sequence(connection, person.tenant, person.person_id)

    async def _set(
        self, connection: AsyncConnection, person: PersonRecord, change: str, **values: Any
    ) -> None:
        await _TABLE.change(connection, person.tenant, person.person_id, change, **values)


def _record(row: Row[Any]) -> PersonRecord:
    return PersonRecord(
        tenant=row.tenant,
        person_id=row.person_id,
        customer_id=row.customer_id,
        first_name=row.first_name,
        last_name=row.last_name,
        controller=row.controller,
        ownership_percentage=row.ownership_percentage,
        verification=verifications.from_column(row.verification),
        core_id=row.core_id,
        sequence=row.sequence,
    )


def context_of(tenant: str, person_id: UUID) -> str:
    """What the sealed fields of the row are bound to."""
    return f"persons/{tenant}/{person_id}"
