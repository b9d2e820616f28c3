"""Pages, filters, events, statements and the network of banks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from increase import (
    AsyncIncrease,
    AuthenticationError,
    InvalidParametersError,
    NotFoundError,
    PermissionDeniedError,
)

from tests.support.increase_bank.postings import load_history
from tests.support.increase_bank.server import RunningBank
from tests.support.increase_clients import client_of, fund, give_number, open_account


async def test_pages_lead_through_all_transactions_newest_first(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    account = await open_account(increase)
    number = await give_number(increase, account)
    store, now = running.bank.store, running.bank.store.now()
    with store.writing():
        load_history(store, account.id, number.id, 250, now - 10**12, now - 10**11)

    first = await increase.transactions.list(account_id=account.id, limit=100)
    everything = [item async for item in increase.transactions.list(account_id=account.id)]

    assert len(first.data) == 100
    assert [item.description for item in everything] == [f"Entry {n}" for n in range(250, 0, -1)]
    balance = await increase.accounts.balance(account.id)
    assert balance.current_balance == sum(item.amount for item in everything)


async def test_transactions_are_filtered_by_time_and_category(increase: AsyncIncrease) -> None:
    account = await open_account(increase)
    await fund(increase, account, 500)
    await increase.simulations.interest_payments.create(account_id=account.id, amount=7)
    soon = datetime.now(UTC) + timedelta(minutes=1)

    interest = await increase.transactions.list(
        account_id=account.id, category={"in": ["interest_payment"]}
    )
    later = await increase.transactions.list(created_at={"after": soon})
    earlier = await increase.transactions.list(created_at={"on_or_before": soon.isoformat()})

    assert [item.amount for item in interest.data] == [7]
    assert later.data == []
    assert [item.amount for item in earlier.data] == [7, 500]


async def test_events_are_read_in_order_and_go_on_at_a_cursor(increase: AsyncIncrease) -> None:
    account = await open_account(increase)
    await fund(increase, account, 500)
    order = {"direction": "ascending", "field": "created_at"}

    first = await increase.events.list(limit=2, order_by=order)  # type: ignore[arg-type] # literals
    following = await increase.events.list(
        limit=100,
        cursor=first.next_cursor or "",
        order_by=order,  # type: ignore[arg-type] # as above
    )
    of_account = await increase.events.list(associated_object_id=account.id)

    seen = [event.category for event in (*first.data, *following.data)]
    assert seen == [
        "entity.created",
        "account.created",
        "account_number.created",
        "transaction.created",
        "inbound_wire_transfer.created",
    ]
    assert following.next_cursor is None
    assert [event.category for event in of_account.data] == ["account.created"]


async def test_a_cursor_is_good_for_its_order_only(increase: AsyncIncrease) -> None:
    await open_account(increase)
    page = await increase.events.list(limit=1)

    with pytest.raises(InvalidParametersError):
        await increase.events.list(
            cursor=page.next_cursor or "",
            order_by={"direction": "ascending", "field": "created_at"},
        )


async def test_a_statement_is_fetched_by_a_link_that_expires(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    account = await open_account(increase)
    await fund(increase, account, 500)

    statement = await increase.simulations.account_statements.create(account_id=account.id)
    async with client_of(running.url, "a-key-that-reads") as reader:
        link = await reader.file_links.create(file_id=statement.file_id)

    contents = await increase.files.contents(statement.file_id)
    assert (statement.starting_balance, statement.ending_balance) == (0, 500)
    assert (await contents.read()).startswith(b"%PDF-")
    async with aiohttp.ClientSession() as session:
        async with session.get(link.unauthenticated_url) as response:
            assert (await response.read()).startswith(b"%PDF-")
        late = link.unauthenticated_url.replace("expires=", "expires=1&was=")
        async with session.get(late) as response:
            assert response.status == 403


async def test_a_balance_is_spread_over_banks_that_insure_it(increase: AsyncIncrease) -> None:
    account = await open_account(increase)
    await fund(increase, account, 600_000_00)

    with pytest.raises(NotFoundError):
        await increase.intrafi_balances.intrafi_balance(account.id)
    await increase.intrafi_account_enrollments.create(
        account_id=account.id, email_address="office@tidewater.example.com"
    )
    balance = await increase.intrafi_balances.intrafi_balance(account.id)

    assert [item.balance for item in balance.balances] == [250_000_00, 250_000_00, 100_000_00]
    assert balance.total_balance == 600_000_00
    assert len({item.fdic_certificate_number for item in balance.balances}) == 3


async def test_keys_are_looked_at_first(running: RunningBank) -> None:
    async with client_of(running.url, "a-key-that-reads") as reader:
        group = await reader.groups.retrieve()
        with pytest.raises(PermissionDeniedError):
            await open_account(reader)
    async with client_of(running.url, "no-key-at-all") as stranger:
        with pytest.raises(AuthenticationError):
            await stranger.groups.retrieve()

    assert group.type == "group"
