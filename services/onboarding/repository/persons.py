"""Persons of businesses, scoped by tenant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.onboarding.models import PersonDetails, PersonRecord, Verification
from services.onboarding.repository import verifications
from services.onboarding.repository.vault import Vault

_COLUMNS = "tenant, person_id, customer_id, details::text, verification::text, core_id, sequence"


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
                    "details": self._vault.seal(details, _context(tenant, person_id)),
                },
            )
            if added.rowcount == 0:
                return False
        return True

    async def customer_of(
        self, connection: AsyncConnection, tenant: str, person_id: UUID
    ) -> UUID | None:
        """The business that the tenant's person belongs to."""
        rows = await connection.execute(
            text(
                "SELECT customer_id FROM persons WHERE tenant = :tenant AND person_id = :person_id"
            ),
            {"tenant": tenant, "person_id": person_id},
        )
        found: UUID | None = rows.scalar_one_or_none()
        return found

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
        return [self._record(row) for row in rows]

    async def set_details(
        self, connection: AsyncConnection, person: PersonRecord, details: PersonDetails
    ) -> None:
        sealed = self._vault.seal(details, _context(person.tenant, person.person_id))
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
        row = await connection.execute(
            text(
                "UPDATE persons SET sequence = sequence + 1"
                " WHERE tenant = :tenant AND person_id = :person_id RETURNING sequence"
            ),
            {"tenant": person.tenant, "person_id": person.person_id},
        )
        return int(row.scalar_one())

    async def _set(
        self, connection: AsyncConnection, person: PersonRecord, change: str, **values: Any
    ) -> None:
        await connection.execute(
            text(
                f"UPDATE persons SET {change}"  # noqa: S608 - constants
                " WHERE tenant = :tenant AND person_id = :person_id"
            ),
            {"tenant": person.tenant, "person_id": person.person_id, **values},
        )

    def _record(self, row: Row[Any]) -> PersonRecord:
        context = _context(row.tenant, row.person_id)
        return PersonRecord(
            tenant=row.tenant,
            person_id=row.person_id,
            customer_id=row.customer_id,
            details=self._vault.open(PersonDetails, row.details, context),
            verification=verifications.from_column(row.verification),
            core_id=row.core_id,
            sequence=row.sequence,
        )


def _context(tenant: str, person_id: UUID) -> str:
    return f"persons/{tenant}/{person_id}"
