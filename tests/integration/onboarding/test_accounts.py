"""News of an account and the answer that says whose it is, in either order and at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest_asyncio
from sqlalchemy import text, update

from libs.persistence.engine import Database
from services.onboarding.handlers.feeds import prepare_financial
from services.onboarding.models import RESERVE, AccountEntry, AccountReport, CustomerRecord
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository import accounts
from services.onboarding.tables import customers
from tests.integration.onboarding.desk import eventually, partner
from tests.integration.onboarding.shelf import add_pending, new_store, open_account, open_shelf
from tests.support.infrastructure import Environment


@pytest_asyncio.fixture
async def shelf(environment: Environment) -> AsyncIterator[Database]:
    async with open_shelf(environment) as database:
        yield database


async def new_customer(shelf: Database) -> CustomerRecord:
    async with shelf.transaction() as connection:
        return (await add_pending(connection, new_store(), f"t{uuid4().hex[:8]}")).customer


def new_account() -> OpenedAccount:
    return OpenedAccount(f"acc_{uuid4().hex}", "1234567890")


async def status_of(shelf: Database, customer: CustomerRecord) -> list[str]:
    async with shelf.transaction() as connection:
        file = await new_store().file(connection, customer.tenant, customer.customer_id)
    assert file is not None
    return [account.status for account in file.accounts]


async def is_a_lock_waited_for(shelf: Database) -> bool:
    async with shelf.transaction() as connection:
        waiting = await connection.execute(
            text(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database() AND query LIKE '%accounts%'"
            )
        )
        return waiting.first() is not None


async def test_news_that_comes_before_the_owner_is_the_accounts_status(shelf: Database) -> None:
    customer, account = await new_customer(shelf), new_account()

    async with shelf.transaction() as connection:
        await accounts.set_status(connection, account.account_id, "open")
        await accounts.set_status(connection, account.account_id, "closed")
    async with shelf.transaction() as connection:
        unowned = await accounts.find_owner(
            connection, partner(customer.tenant), account.account_id
        )
        await open_account(connection, customer, account.account_id, account.account_number)

    assert unowned is None
    assert await status_of(shelf, customer) == ["closed"]
    async with shelf.transaction() as connection:
        owner = await accounts.find_owner(connection, partner(customer.tenant), account.account_id)
    assert owner == customer.customer_id


async def test_news_while_the_owner_is_being_recorded_waits_for_that(shelf: Database) -> None:
    customer, account = await new_customer(shelf), new_account()

    async def report() -> None:
        async with shelf.transaction() as connection:
            await accounts.set_status(connection, account.account_id, "closed")

    async with shelf.transaction() as connection:
        await open_account(connection, customer, account.account_id, account.account_number)
        news = asyncio.create_task(report())
        await eventually(lambda: is_a_lock_waited_for(shelf))
    await news

    assert await status_of(shelf, customer) == ["closed"]


async def test_an_owner_while_news_is_being_recorded_waits_for_that(shelf: Database) -> None:
    customer, account = await new_customer(shelf), new_account()

    async def own() -> None:
        async with shelf.transaction() as connection:
            await open_account(connection, customer, account.account_id, account.account_number)

    async with shelf.transaction() as connection:
        await accounts.set_status(connection, account.account_id, "closed")
        owning = asyncio.create_task(own())
        await eventually(lambda: is_a_lock_waited_for(shelf))
    await owning

    assert await status_of(shelf, customer) == ["closed"]


def reported(position: int, account_id: str, status: str) -> AccountEntry:
    report = AccountReport(account_id=account_id, customer_id="", status=status)
    return AccountEntry(position=position, type="an account's status", report=report)


async def test_reports_are_applied_in_the_order_of_their_accounts(shelf: Database) -> None:
    lower, higher = sorted(new_account().account_id for _ in range(2))
    record = await prepare_financial(
        [
            reported(1, higher, "frozen"),
            reported(2, lower, "open"),
            reported(3, lower, "closed"),
        ]
    )

    async def report() -> None:
        async with shelf.transaction() as connection:
            await record(connection)

    async with shelf.transaction() as connection:
        await accounts.set_status(connection, lower, "open")
        reporting = asyncio.create_task(report())
        await eventually(lambda: is_a_lock_waited_for(shelf))
        # Were the higher one reported already, the two transactions would deadlock.
        await accounts.set_status(connection, higher, "open")
    await reporting

    async with shelf.transaction() as connection:
        found = await connection.execute(
            text(
                "SELECT status FROM accounts WHERE account_id IN (:lower, :higher) ORDER BY account_id"
            ),
            {"lower": lower, "higher": higher},
        )
        assert list(found.scalars()) == ["closed", "frozen"]


async def test_an_opening_waits_for_no_account_of_a_report_that_waits_for_its_customer(
    shelf: Database,
) -> None:
    customer = await new_customer(shelf)
    deposit, reserve = sorted(new_account().account_id for _ in range(2))
    reserved = AccountReport(
        account_id=reserve,
        customer_id=str(customer.customer_id),
        status="open",
        account_number="1234567891",
        account_group=RESERVE,
    )
    record = await prepare_financial(
        [
            reported(1, deposit, "frozen"),
            AccountEntry(position=2, type="a reserve account", report=reserved),
        ]
    )

    async def report() -> None:
        async with shelf.transaction() as connection:
            await record(connection)

    async with shelf.transaction() as connection:
        # As the commit of openings: a new `core_id`, which is unique, keeps rows of others from naming the customer.
        await connection.execute(
            update(customers)
            .where(customers.c.customer_id == customer.customer_id)
            .values(core_id=f"cor_{uuid4().hex}")
        )
        reporting = asyncio.create_task(report())
        await eventually(lambda: is_a_lock_waited_for(shelf))
        # Were the deposit account reported already, the two transactions would deadlock.
        await open_account(connection, customer, deposit, "1234567890")
    await reporting

    assert await status_of(shelf, customer) == ["frozen", "open"]
