"""Customers put into the database past every provider."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, update

from libs.contracts.customers import CustomerStatus
from libs.contracts.masking import masked
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring, LookupKeys
from services.onboarding import tables
from services.onboarding.models import (
    DEPOSIT,
    CustomerFile,
    CustomerRecord,
    PersonDetails,
    Verification,
)
from services.onboarding.repository import accounts, customers, persons
from services.onboarding.repository.store import Store
from services.onboarding.repository.tenant_rows import json_of
from services.onboarding.repository.vault import Vault
from tests.integration.onboarding.desk import application, person
from tests.support.infrastructure import Environment


def new_store() -> Store:
    """With keys of its own: what another one sealed it cannot open."""
    key = base64.b64encode(os.urandom(32)).decode()
    return Store(Vault(Keyring(f"k1:{key}"), LookupKeys(f"k1:{key}")))


@asynccontextmanager
async def open_shelf(environment: Environment) -> AsyncIterator[Database]:
    database = open_database(environment.database_urls["onboarding"], "shelf", pool_size=8)
    try:
        yield database
    finally:
        await database.close()


async def add_pending(
    connection: AsyncConnection, store: Store, tenant: str, **changes: Any
) -> CustomerFile:
    """An application as it is stored before any provider heard of it."""
    command = application([person()], **changes)
    customer_id = uuid4()
    address = command.business.business_address
    business = command.business.model_copy(update={"mailing_address": address})
    details = PersonDetails.model_validate(command.persons[0].model_dump(exclude={"id"}))
    person_id = uuid4()
    await connection.execute(
        insert(tables.customers).values(
            tenant=tenant,
            customer_id=customer_id,
            saga_id=uuid4(),
            status="pending",
            business=json_of("sealed"),
            ein_last_four=masked(business.ein),
        ),
        {"sealed": store.vault.seal(business, customers.context_of(customer_id))},
    )
    await connection.execute(
        insert(tables.persons).values(
            tenant=tenant,
            person_id=person_id,
            customer_id=customer_id,
            position=0,
            details=json_of("sealed"),
        ),
        {"sealed": store.vault.seal(details, persons.context_of(tenant, person_id))},
    )
    await store.external_accounts.add_draft(
        connection,
        draft_id=uuid4(),
        tenant=tenant,
        customer_id=customer_id,
        account=command.external_bank_account,
    )
    return await read(connection, store, tenant, customer_id)


async def add_approved(
    connection: AsyncConnection, store: Store, tenant: str, **changes: Any
) -> CustomerFile:
    """A customer with an account, a person and a linked external account."""
    file = await add_pending(connection, store, tenant, **changes)
    assert file.draft is not None
    await store.customers.set_verification(connection, file.customer, _approval())
    for each in file.persons:
        await store.persons.set_verification(connection, each, _approval())
    for table in (tables.customers, tables.persons):
        await connection.execute(
            update(table)
            .where(table.c.customer_id == file.customer.customer_id)
            .values(core_id=f"cor_{uuid4().hex}")
        )
    await store.external_accounts.link(connection, file.draft, f"ext_{uuid4().hex}")
    await open_account(connection, file.customer, f"acc_{uuid4().hex}", "1234567890")
    await store.customers.set_status(connection, file.customer, CustomerStatus.APPROVED)
    return await read(connection, store, tenant, file.customer.customer_id)


async def open_account(
    connection: AsyncConnection, customer: CustomerRecord, account_id: str, number: str
) -> None:
    owner = customer.tenant, customer.customer_id
    assert await accounts.own(connection, *owner, account_id, number, DEPOSIT)


async def read(
    connection: AsyncConnection, store: Store, tenant: str, customer_id: UUID
) -> CustomerFile:
    file = await store.file(connection, tenant, customer_id)
    assert file is not None
    return file


def _approval() -> Verification:
    return Verification(f"idn_{uuid4().hex}", CustomerStatus.APPROVED, 1)
