"""The tables of one customer together."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from libs.persistence.async_engine import AsyncConnection
from services.onboarding.models import (
    CustomerDetails,
    CustomerFile,
    CustomerRecord,
)
from services.onboarding.repository import customer_files
from services.onboarding.repository.customers import Customers
from services.onboarding.repository.external_accounts import ExternalAccounts
from services.onboarding.repository.persons import Persons
from services.onboarding.repository.vault import Vault


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
        return next(iter(await self.complete(connection, [customer])), None)

    async def details(self, connection: AsyncConnection, file: CustomerFile) -> CustomerDetails:
        """Everything sensitive about the customer opened, to tell a provider."""
        customer_id = file.customer.customer_id
        stored = await customer_files.read_in(connection, [customer_id])
        return stored[customer_id].details(self.vault)

    async def complete(
        self, connection: AsyncConnection, customers: Iterable[CustomerRecord]
    ) -> list[CustomerFile]:
        """The files of these customers, in the order given; without those that were removed meanwhile."""
        ids = [customer.customer_id for customer in customers]
        stored = await customer_files.read_in(connection, ids)
        return [stored[customer_id].file for customer_id in ids if customer_id in stored]
