"""What the tables hold: read without opening what is sealed, and without the rules of input."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import event, text

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import CustomerStatus, ListCustomers
from libs.persistence.engine import Database
from libs.persistence.sealing import CannotOpen
from services.onboarding import views
from services.onboarding.handlers.queries import Queries
from tests.integration.onboarding.desk import bank_account, business, partner
from tests.integration.onboarding.shelf import (
    add_approved,
    add_pending,
    new_store,
    open_shelf,
    read,
)
from tests.integration.statistics import statistics_of_many_rows
from tests.support.infrastructure import Environment


@pytest_asyncio.fixture
async def shelf(environment: Environment) -> AsyncIterator[Database]:
    async with open_shelf(environment) as database:
        yield database


async def test_views_and_events_open_nothing_that_is_sealed(shelf: Database) -> None:
    tenant, ours, without_our_keys = f"t{uuid4().hex[:8]}", new_store(), new_store()
    async with shelf.transaction() as connection:
        stored = await add_approved(
            connection,
            ours,
            tenant,
            business=business(ein="12-3456789"),
            external_bank_account=bank_account(account_number="7310528846"),
        )

    listed = await Queries(shelf, without_our_keys).list_customers(
        partner(tenant), ListCustomers(), 0
    )
    async with shelf.transaction() as connection:
        file = await read(connection, without_our_keys, tenant, stored.customer.customer_id)
        with pytest.raises(CannotOpen):
            await without_our_keys.details(connection, file)
        opened = await ours.details(connection, stored)

    (customer,) = listed.payload(table.LIST_CUSTOMERS)["data"]
    assert customer["business"]["ein"] == "6789"
    assert customer["business"]["mailing_address"]["city"] == "Albany"
    assert customer["external_bank_accounts"][0]["account_number"] == "8846"
    assert [p["first_name"] for p in customer["persons"]] == ["Ada"]
    assert "ein" not in views.customer_event(file).model_dump()["business"]
    assert views.person_event(file.persons[0]).last_name == "Byron"
    assert views.external_account_event(file.external_accounts[0]).account_number == "8846"
    assert opened.business.ein == "123456789"


async def test_an_external_account_that_the_release_before_links_is_as_old_as_its_link(
    shelf: Database,
) -> None:
    tenant, store, linked_as = f"t{uuid4().hex[:8]}", new_store(), f"ext_{uuid4().hex}"
    async with shelf.transaction() as connection:
        await add_pending(connection, store, tenant)
        await connection.execute(
            text(
                "UPDATE external_accounts SET created_at = now() - interval '3 days' WHERE tenant = :t"
            ),
            {"t": tenant},
        )
        before = await connection.scalar(text("SELECT clock_timestamp()"))

    async with shelf.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE external_accounts SET external_account_id = :id, is_primary = true WHERE tenant = :t"
            ),
            {"id": linked_as, "t": tenant},
        )

    async with shelf.transaction() as connection:
        owner = await store.external_accounts.owner_of(connection, tenant, linked_as)
    assert owner is not None
    assert owner.linked_at is not None
    assert owner.linked_at >= before


@pytest.mark.parametrize("status", [None, CustomerStatus.APPROVED])
async def test_a_page_of_customers_passes_over_those_before_it_in_the_index(
    environment: Environment, shelf: Database, status: CustomerStatus | None
) -> None:
    tenant, store, noted = f"t{uuid4().hex[:8]}", new_store(), list[tuple[str, Any]]()
    async with shelf.transaction() as connection:
        added = [await add_approved(connection, store, tenant) for _ in range(3)]

    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        noted.append((statement, parameters))

    async with shelf.transaction() as connection:
        event.listen(shelf.engine.sync_engine, "before_cursor_execute", note)
        page, total = await store.customers.page(connection, tenant, status, limit=2, offset=1)
        event.remove(shelf.engine.sync_engine, "before_cursor_execute", note)
    statement, parameters = noted[-1]
    async with statistics_of_many_rows(environment, "onboarding", "customers") as superuser:
        plan = [row[0] for row in await superuser.fetch(f"EXPLAIN {statement}", *parameters)]

    newest_first = [file.customer.customer_id for file in reversed(added)]
    assert ([each.customer_id for each in page], total) == (newest_first[1:], 3)
    assert any("Index Only Scan" in line for line in plan), plan


async def test_the_last_four_digits_follow_the_ein(shelf: Database) -> None:
    tenant, store = f"t{uuid4().hex[:8]}", new_store()
    async with shelf.transaction() as connection:
        file = await add_approved(connection, store, tenant)
        known = await store.customers.business(connection, file.customer)

        changed = known.model_copy(update={"ein": "201234321"})
        await store.customers.set_business(connection, file.customer, changed)

        file = await read(connection, store, tenant, file.customer.customer_id)
        assert await store.customers.business(connection, file.customer) == changed
    assert views.customer(file).business.ein == "4321"


async def test_what_the_rules_of_input_refuse_by_now_can_still_be_read(shelf: Database) -> None:
    tenant, store = f"t{uuid4().hex[:8]}", new_store()
    async with shelf.transaction() as connection:
        customer_id = (await add_pending(connection, store, tenant)).customer.customer_id
        await connection.execute(
            text(
                "UPDATE customers SET business = business ||"
                ' \'{"phone": "none", "business_address": {"street_1": "1", "city": "X",'
                ' "state": "Nowhere", "zip_code": "?", "country": "US", "street_2": null}}\''
                " WHERE customer_id = :id"
            ),
            {"id": customer_id},
        )
        await connection.execute(
            text(
                'UPDATE persons SET details = details || \'{"email": "none"}\' WHERE customer_id = :id'
            ),
            {"id": customer_id},
        )

        file = await read(connection, store, tenant, customer_id)
        details = await store.details(connection, file)

    assert views.customer(file).business.phone == "none"
    assert views.customer_event(file).business.business_address.state == "Nowhere"
    assert details.business.business_address.zip_code == "?"
    assert details.persons[0].email == "none"
