"""Events of customers, persons and external accounts, recorded in the transaction that made them true.

An event's sequence is assigned under the lock of its resource's row; callers hold the customer's too, so
that what the event says of the parts is true together.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.events import EVENT_TYPES, new_event
from libs.contracts.model import Model
from libs.persistence import outbox
from services.onboarding import views
from services.onboarding.models import CustomerRecord, ExternalAccountRecord, PersonRecord
from services.onboarding.repository.store import Store


class Events:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_customer(
        self, connection: AsyncConnection, name: str, customer: CustomerRecord
    ) -> None:
        """`customer` only says whose event it is: the data is read anew, with the transaction's own changes."""
        tenant, customer_id = customer.tenant, customer.customer_id
        sequence = await self._store.customers.next_sequence(connection, customer)
        file = await self._store.file(connection, tenant, customer_id)
        assert file is not None, "its row is locked"
        data = views.customer_event(file)
        await _record(
            connection, name, data, owner=customer, resource_id=str(customer_id), sequence=sequence
        )

    async def of_person(self, connection: AsyncConnection, name: str, person: PersonRecord) -> None:
        """`person` as it is after the transaction's changes."""
        sequence = await self._store.persons.next_sequence(connection, person)
        await _record(
            connection,
            name,
            views.person_event(person),
            owner=person,
            resource_id=str(person.person_id),
            sequence=sequence,
        )

    async def of_external_account(
        self, connection: AsyncConnection, name: str, account: ExternalAccountRecord
    ) -> None:
        """`account` as it is after the transaction's changes."""
        data = views.external_account_event(account)
        sequence = await self._store.external_accounts.next_sequence(connection, account)
        await _record(
            connection,
            name,
            data,
            owner=account,
            resource_id=data.external_account_id,
            sequence=sequence,
        )


async def _record(
    connection: AsyncConnection,
    name: str,
    data: Model,
    *,
    owner: CustomerRecord | PersonRecord | ExternalAccountRecord,
    resource_id: str,
    sequence: int,
) -> None:
    event = new_event(
        EVENT_TYPES[name],
        data,
        tenant=owner.tenant,
        customer_id=str(owner.customer_id),
        resource_id=resource_id,
        sequence=sequence,
        at=datetime.now(UTC),
    )
    await outbox.record(connection, event)
