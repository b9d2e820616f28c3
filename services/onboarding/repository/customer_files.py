"""Customers with all that belongs to them, each read as one row: a plain SQL constant with asyncpg's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from sqlalchemy import RowMapping

from libs.contracts.customer_views import BusinessView
from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount
from libs.contracts.exact_json import decode
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.models import (
    AccountRecord,
    CustomerDetails,
    CustomerFile,
    CustomerRecord,
    ExternalAccountRecord,
    PersonDetails,
    PersonRecord,
    Verification,
)
from services.onboarding.repository import customers, external_accounts, persons, verifications
from services.onboarding.repository.stored import read_stored
from services.onboarding.repository.vault import Vault

_FILES = """
    SELECT c.tenant, c.customer_id, c.saga_id, c.status, c.business::text, c.ein_last_four, c.verification::text,
        c.core_id, c.refused_by_provider, c.sequence, c.created_at, c.updated_at,
        (SELECT json_agg(json_build_object('person_id', p.person_id, 'details', p.details, 'verification',
            p.verification, 'core_id', p.core_id, 'sequence', p.sequence) ORDER BY p.position)::text
            FROM persons p WHERE p.tenant = c.tenant AND p.customer_id = c.customer_id) AS persons,
        (SELECT json_agg(json_build_object('draft_id', e.draft_id, 'external_account_id', e.external_account_id,
            'details', e.details, 'number_last_four', e.number_last_four, 'primary', e.is_primary,
            'sequence', e.sequence) ORDER BY e.is_primary DESC, e.created_at DESC)::text
            FROM external_accounts e WHERE e.tenant = c.tenant AND e.customer_id = c.customer_id) AS external_accounts,
        (SELECT json_agg(json_build_object('account_id', a.account_id, 'customer_id', a.customer_id,
            'account_number', a.account_number, 'account_group', a.account_group, 'status', a.status)
            ORDER BY a.account_id)::text
            FROM accounts a WHERE a.tenant = c.tenant AND a.customer_id = c.customer_id) AS accounts,
        (SELECT s.refusal_code FROM saga_steps s WHERE c.refused_by_provider AND s.saga_id = c.saga_id
            AND s.tenant = c.tenant AND s.state = 'refused' AND NOT s.compensation
            ORDER BY s.recorded_at LIMIT 1) AS refusal
    FROM (SELECT * FROM unnest($1::uuid[]) AS a (customer_id) LIMIT cardinality($1)) AS asked
        JOIN customers c ON c.customer_id = asked.customer_id
    """
"""By ids that were found within their tenant before.

`LIMIT cardinality($1)`: PostgreSQL then makes one plan for all calls; it plans `= ANY($1)` anew for each, which costs
more than reading.
"""


class _Person(msgspec.Struct):
    person_id: UUID
    details: msgspec.Raw
    core_id: str | None
    sequence: int
    verification: Verification | None


class _ExternalAccount(msgspec.Struct):
    draft_id: UUID
    external_account_id: str | None
    details: msgspec.Raw
    number_last_four: str
    primary: bool
    sequence: int


_persons = msgspec.json.Decoder(list[_Person])
_external_accounts = msgspec.json.Decoder(list[_ExternalAccount])
_accounts = msgspec.json.Decoder(list[AccountRecord])


@dataclass(frozen=True, slots=True)
class StoredCustomer:
    """A customer's file, and what is sealed of it."""

    file: CustomerFile
    business: str
    persons: Mapping[UUID, str]
    draft: str | None

    def details(self, vault: Vault) -> CustomerDetails:
        """Everything sensitive about the customer opened, to tell a provider."""
        customer, draft = self.file.customer, self.file.draft
        return CustomerDetails(
            business=vault.open(
                Business, self.business, customers.context_of(customer.customer_id)
            ),
            persons=tuple(
                vault.open(PersonDetails, text, persons.context_of(customer.tenant, person_id))
                for person_id, text in self.persons.items()
            ),
            draft=None
            if draft is None or self.draft is None
            else vault.open(
                ExternalBankAccount, self.draft, external_accounts.context_of(draft.draft_id)
            ),
        )


async def read(
    connection: asyncpg.Connection, customer_ids: Sequence[UUID]
) -> dict[UUID, StoredCustomer]:
    """Of any tenant: the ids are those of commands' own customers."""
    rows = await connection.fetch(_FILES, customer_ids)
    return {row["customer_id"]: _stored(row) for row in rows}


async def read_in(
    connection: AsyncConnection, customer_ids: Sequence[UUID]
) -> dict[UUID, StoredCustomer]:
    """As `read`, in a transaction of SQLAlchemy's: of ids that were found within their tenant before."""
    rows = await connection.exec_driver_sql(_FILES, (customer_ids,))
    return {row.customer_id: _stored(row._mapping) for row in rows}


def _stored(row: asyncpg.Record | RowMapping) -> StoredCustomer:
    tenant, customer_id = row["tenant"], row["customer_id"]
    found = _persons.decode(row["persons"] or "[]")
    external = _external_accounts.decode(row["external_accounts"] or "[]")
    file = CustomerFile(
        customer=CustomerRecord(
            tenant=tenant,
            customer_id=customer_id,
            saga_id=row["saga_id"],
            status=CustomerStatus(row["status"]),
            business=read_stored(BusinessView, decode(row["business"])),
            ein_last_four=row["ein_last_four"],
            verification=verifications.from_column(row["verification"]),
            core_id=row["core_id"],
            refused_by_provider=row["refused_by_provider"],
            sequence=row["sequence"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        ),
        persons=tuple(_person(tenant, customer_id, person) for person in found),
        external_accounts=tuple(
            _external_account(tenant, customer_id, account) for account in external
        ),
        accounts=tuple(_accounts.decode(row["accounts"] or "[]")),
        refusal=row["refusal"],
    )
    draft = next((a for a in external if a.external_account_id is None), None)
    return StoredCustomer(
        file,
        row["business"],
        {person.person_id: bytes(person.details).decode() for person in found},
        None if draft is None else bytes(draft.details).decode(),
    )


def _person(tenant: str, customer_id: UUID, person: _Person) -> PersonRecord:
    details: dict[str, Any] = decode(bytes(person.details))
    return PersonRecord(
        tenant=tenant,
        person_id=person.person_id,
        customer_id=customer_id,
        first_name=details["first_name"],
        last_name=details["last_name"],
        controller=details["controller"],
        ownership_percentage=Decimal(details["ownership_percentage"]),
        verification=person.verification,
        core_id=person.core_id,
        sequence=person.sequence,
    )


def _external_account(
    tenant: str, customer_id: UUID, account: _ExternalAccount
) -> ExternalAccountRecord:
    details: dict[str, Any] = decode(bytes(account.details))
    return ExternalAccountRecord(
        draft_id=account.draft_id,
        tenant=tenant,
        customer_id=customer_id,
        external_account_id=account.external_account_id,
        bank_name=details["bank_name"],
        name_on_account=details["name_on_account"],
        routing_number=details["routing_number"],
        number_last_four=account.number_last_four,
        primary=account.primary,
        sequence=account.sequence,
    )
