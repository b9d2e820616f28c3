"""One sensitive value of a customer, shown to an operator and audited in the transaction that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, assert_never
from uuid import UUID

from libs.contracts.errors import NotFound
from libs.contracts.operating.customers import Reveal, SensitiveField
from libs.contracts.principal import Principal
from libs.handling.operating.auditing import record
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.onboarding.models import CustomerFile
from services.onboarding.repository.store import Store

PartT = TypeVar("PartT")


async def reveal(
    database: Database, store: Store, principal: Principal, customer_id: UUID, wanted: Reveal
) -> str:
    """Raises NotFound: there is no such customer, or no such part of it."""
    async with database.transaction() as connection:
        customer = await store.customers.find_owner(connection, customer_id)
        files = [] if customer is None else await store.complete(connection, [customer])
        if not files:
            raise NotFound
        value = await _value(connection, store, files[0], wanted)
        await record(
            connection,
            principal,
            "customers.reveal",
            customer_id=str(customer_id),
            field=wanted.field.value,
            person_id=wanted.person_id,
            account_id=wanted.account_id,
            external_bank_account_id=wanted.external_bank_account_id,
            reason=wanted.reason,
        )
    return value


async def _value(
    connection: AsyncConnection, store: Store, file: CustomerFile, wanted: Reveal
) -> str:
    match wanted.field:
        case SensitiveField.EIN:
            return (await store.customers.business(connection, file.customer)).ein
        case SensitiveField.TIN | SensitiveField.DATE_OF_BIRTH as field:
            person_id = _only(
                person.person_id
                for person in file.persons
                if str(person.person_id) == wanted.person_id
            )
            found = await store.persons.details(connection, file.customer.tenant, [person_id])
            return str(getattr(found[person_id], field))
        case SensitiveField.ACCOUNT_NUMBER:
            return _only(
                account.account_number
                for account in file.accounts
                if account.account_id == wanted.account_id
            )
        case SensitiveField.EXTERNAL_ACCOUNT_NUMBER:
            linked = _only(
                account
                for account in file.external_accounts
                if account.external_account_id == wanted.external_bank_account_id
            )
            return (await store.external_accounts.details(connection, linked)).account_number
        case _:
            assert_never(wanted.field)


def _only(parts: Iterable[PartT]) -> PartT:
    """The part that the request names. Raises NotFound."""
    for part in parts:
        return part
    raise NotFound
