"""What the command handlers work with."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from libs.contracts.customers import CustomerStatus
from libs.persistence.async_engine import AsyncConnection
from services.onboarding import states
from services.onboarding.events import Events
from services.onboarding.models import CustomerFile
from services.onboarding.ports import CoreBanking, IdentityProvider
from services.onboarding.repository import ein_holds
from services.onboarding.repository.store import Store


@dataclass(frozen=True)
class Parts:
    identity: IdentityProvider
    core: CoreBanking
    store: Store
    events: Events

    async def locked_file(
        self, connection: AsyncConnection, tenant: str, customer_id: UUID
    ) -> CustomerFile:
        """The file of a customer that is known to exist, its row locked."""
        file = await self.store.file(connection, tenant, customer_id, lock=True)
        assert file is not None, "customers are not removed once a provider knows of them"
        return file

    async def announce(self, connection: AsyncConnection, file: CustomerFile) -> None:
        """Record `customer.created` and `person.created`, unless they were recorded before: called after the provider's
        first answer.
        """
        if file.customer.sequence == 0:
            await self.events.of_customer(connection, "customer.created", file.customer)
            for person in file.persons:
                await self.events.of_person(connection, "person.created", person)

    async def move(
        self,
        connection: AsyncConnection,
        file: CustomerFile,
        status: CustomerStatus,
        *,
        refused_by_provider: bool = False,
    ) -> None:
        """Move the customer, whose row is locked, to `status`, and record the event that tells so. Of one that leaves
        `pending` the verdicts on its persons are told, too: those of its onboarding were stored without events.
        """
        assert states.may_follow(file.customer.status, status)
        customer = file.customer
        await self.store.customers.set_status(
            connection, customer, status, refused_by_provider=refused_by_provider
        )
        if status in states.FINAL:
            await ein_holds.release(connection, customer.tenant, customer.customer_id)
        await self.events.of_customer(connection, states.EVENTS[status], customer)
        if customer.status is CustomerStatus.PENDING:
            for person in file.persons:
                if person.status is not CustomerStatus.PENDING:
                    await self.events.of_person(connection, "person.updated", person)
