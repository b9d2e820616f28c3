"""Events of customers, persons and external accounts, recorded in the transaction that made them true.

An event's sequence is assigned under the lock of its resource's row; callers hold the customer's too, so
that what the event says of the parts is true together.
"""

from __future__ import annotations

from datetime import UTC, datetime

from libs.contracts.events import EVENT_TYPES, Event, new_event
from libs.contracts.model import Model
from libs.persistence import outbox
from libs.persistence.async_engine import AsyncConnection
from services.onboarding import views
from services.onboarding.models import (
    CustomerFile,
    CustomerRecord,
    ExternalAccountRecord,
    PersonRecord,
)
from services.onboarding.repository.store import Store


def of_creation(file: CustomerFile) -> list[Event]:
    """The first events of a customer and its persons; `file` as it is after the transaction's changes."""
    return [
        _customer_event("customer.created", file),
        *(_person_event("person.created", person, person.sequence) for person in file.persons),
    ]


def of_opening(file: CustomerFile, *, leaves_pending: bool) -> list[Event]:
    """The events by which a customer is approved; `file` as it is after the transaction's changes.

    Args:
        leaves_pending: it is its onboarding that approves it, so that its persons' verdicts are told as well. A verdict
            that a decision has brought before is told again.
    """
    persons = file.persons if leaves_pending else ()
    return [
        _customer_event("customer.approved", file),
        *(_person_event("person.updated", person, person.sequence) for person in persons),
        *(
            _external_account_event("external_account.created", account, account.sequence)
            for account in file.external_accounts
        ),
    ]


class Events:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_customer(
        self, connection: AsyncConnection, name: str, customer: CustomerRecord
    ) -> None:
        """`customer` only says whose event it is: the data is read anew, with the transaction's own changes."""
        await self._store.customers.next_sequence(connection, customer)
        file = await self._store.file(connection, customer.tenant, customer.customer_id)
        assert file is not None, "its row is locked"
        await outbox.record(connection, _customer_event(name, file))

    async def of_person(self, connection: AsyncConnection, name: str, person: PersonRecord) -> None:
        """`person` as it is after the transaction's changes."""
        sequence = await self._store.persons.next_sequence(connection, person)
        await outbox.record(connection, _person_event(name, person, sequence))

    async def of_external_account(
        self, connection: AsyncConnection, name: str, account: ExternalAccountRecord
    ) -> None:
        """`account` as it is after the transaction's changes."""
        sequence = await self._store.external_accounts.next_sequence(connection, account)
        await outbox.record(connection, _external_account_event(name, account, sequence))


def _customer_event(name: str, file: CustomerFile) -> Event:
    customer = file.customer
    return _event(
        name, views.customer_event(file), customer, str(customer.customer_id), customer.sequence
    )


def _person_event(name: str, person: PersonRecord, sequence: int) -> Event:
    return _event(name, views.person_event(person), person, str(person.person_id), sequence)


def _external_account_event(name: str, account: ExternalAccountRecord, sequence: int) -> Event:
    data = views.external_account_event(account)
    return _event(name, data, account, data.external_account_id, sequence)


def _event(
    name: str,
    data: Model,
    owner: CustomerRecord | PersonRecord | ExternalAccountRecord,
    resource_id: str,
    sequence: int,
) -> Event:
    return new_event(
        EVENT_TYPES[name],
        data,
        tenant=owner.tenant,
        customer_id=str(owner.customer_id),
        resource_id=resource_id,
        sequence=sequence,
        at=datetime.now(UTC),
    )
