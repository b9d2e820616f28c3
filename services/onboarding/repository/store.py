"""The tables of one customer together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from libs.persistence.async_engine import AsyncConnection
from services.onboarding.models import (
    AccountRecord,
    CustomerDetails,
    CustomerFile,
    CustomerRecord,
    ExternalAccountRecord,
    PersonRecord,
)
from services.onboarding.repository import accounts
from services.onboarding.repository.customers import Customers
from services.onboarding.repository.external_accounts import ExternalAccounts
from services.onboarding.repository.persons import Persons
from services.onboarding.repository.vault import Vault

RecordT = TypeVar("RecordT", PersonRecord, ExternalAccountRecord, AccountRecord)


class Store:
    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.customers = Customers(vault)
        self.persons = Persons(vault)
        self.external_accounts = ExternalAccounts(vault)

    async def file(
        self, connection: AsyncConnection, tenant: str, customer_id: UUID, *, lock: bool = False
    ) -> CustomerFile | None:
        """A customer of this tenant with all that belongs to it.

        Args:
            lock: the customer's row until the transaction ends; every change of a part of a customer holds this lock.
        """
        customer = await self.customers.find(connection, tenant, customer_id, lock=lock)
        if customer is None:
            return None
        return (await self.complete(connection, tenant, [customer]))[0]

    async def details(self, connection: AsyncConnection, file: CustomerFile) -> CustomerDetails:
        """Everything sensitive about the customer opened, to tell a provider."""
        tenant, draft = file.customer.tenant, file.draft
        ids = [person.person_id for person in file.persons]
        persons = await self.persons.details(connection, tenant, ids)
        return CustomerDetails(
            business=await self.customers.business(connection, file.customer),
            persons=tuple(persons[person_id] for person_id in ids),
            draft=await self.external_accounts.details(connection, draft) if draft else None,
        )

    async def complete(
        self, connection: AsyncConnection, tenant: str, customers: Iterable[CustomerRecord]
    ) -> list[CustomerFile]:
        """The files of these customers of the tenant, in the order given."""
        customers = list(customers)
        ids = [customer.customer_id for customer in customers]
        persons = _by_customer(await self.persons.of_customers(connection, tenant, ids))
        external = _by_customer(await self.external_accounts.of_customers(connection, tenant, ids))
        owned = _by_customer(await accounts.of_customers(connection, tenant, ids))
        return [
            CustomerFile(
                customer=customer,
                persons=tuple(persons[customer.customer_id]),
                external_accounts=tuple(external[customer.customer_id]),
                accounts=tuple(owned[customer.customer_id]),
            )
            for customer in customers
        ]


def _by_customer(records: Iterable[RecordT]) -> dict[UUID, list[RecordT]]:
    grouped: dict[UUID, list[RecordT]] = defaultdict(list)
    for record in records:
        grouped[record.customer_id].append(record)
    return grouped
