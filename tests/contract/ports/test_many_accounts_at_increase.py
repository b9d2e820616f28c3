"""Many accounts at Increase are read from its lists, whose pages have 100 rows, where these are short enough."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from libs.contracts.accounts import Account
from libs.contracts.bank_days import BANK_ZONE, today_at_the_bank
from libs.contracts.errors import ProviderError
from tests.contract.ports.increase_ledger import IncreaseLedgerBank
from tests.support.increase_bank.faults import FaultRule
from tests.support.increase_clients import open_account
from tests.support.pace import pace
from tests.unit.ledger_read.fakes import PARTNER

MODULES = "services.ledger_read.adapters.increase"
MANY = 16
LISTS = {"GET /accounts", "GET /account_numbers", "GET /transactions"}


@pytest.fixture
def bank(increase_ledger_bank: IncreaseLedgerBank) -> IncreaseLedgerBank:
    return increase_ledger_bank


async def open_many(bank: IncreaseLedgerBank) -> list[str]:
    return [(await bank.open_account()).account_id for _ in range(MANY)]


async def read(
    bank: IncreaseLedgerBank, account_ids: list[str]
) -> tuple[list[Account], Counter[str]]:
    """The accounts, and how often each operation of the bank was asked for."""
    before = Counter(bank.running.bank.requests)
    accounts = await bank.financial.accounts(PARTNER, account_ids, time.time() + 10 * pace())
    return accounts, Counter(bank.running.bank.requests) - before


async def pay_interest(
    bank: IncreaseLedgerBank,
    account_id: str,
    cents: int,
    at: datetime,
    accrued_on: str | None = None,
    period_end: datetime | None = None,
) -> None:
    store = bank.running.bank.store
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "now", lambda: int(at.timestamp()) * 1_000_000)
        await bank.increase.simulations.interest_payments.create(
            account_id=account_id,
            amount=cents,
            accrued_on_account_id=accrued_on or account_id,
            period_end=period_end or at + timedelta(days=14),
        )


async def test_many_accounts_are_read_by_the_page_as_each_is_by_itself(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_ids = await open_many(bank)
    first, second, last = account_ids[0], account_ids[1], account_ids[-1]
    today = today_at_the_bank()
    new_year = datetime(today.year, 1, 1, tzinfo=BANK_ZONE)
    this_month = new_year.replace(month=today.month)
    end_of_december = datetime(today.year - 1, 12, 31, 23, 59, 59, tzinfo=UTC)
    for at in (new_year - timedelta(seconds=1), new_year + timedelta(hours=2)):
        await pay_interest(bank, first, 1_000, at, period_end=end_of_december)
    await pay_interest(bank, first, 100, new_year)
    await pay_interest(bank, first, 20, this_month)
    await pay_interest(bank, second, 5, this_month, accrued_on=first)
    for cents in range(1, 12):
        await pay_interest(bank, last, cents, this_month)
    numbers = await bank.increase.account_numbers.list(account_id=first)
    await bank.increase.account_numbers.create(
        account_id=first, name="Another", idempotency_key=uuid.uuid4().hex
    )
    await bank.increase.accounts.close(account_ids[2])
    bank.running.bank.conduct.page_limit = 5
    monkeypatch.setattr(f"{MODULES}.whole_lists.ACCOUNTS_FOR_A_PAGE", 4)

    listed, requests = await read(bank, account_ids)
    _, again = await read(bank, account_ids)
    singly = [account for one in reversed(account_ids) for account in (await read(bank, [one]))[0]]

    assert listed == singly
    by_id = {account.id: account for account in listed}
    assert by_id[first].account_number == numbers.data[0].account_number
    assert by_id[first].interest_earned_year_to_date == Decimal("1.20")
    assert by_id[second].interest_earned_year_to_date == 0
    assert by_id[last].interest_earned_year_to_date == Decimal("0.66")
    assert by_id[account_ids[2]].status == "closed"
    assert set(requests) == LISTS
    assert (requests["GET /accounts"], requests["GET /account_numbers"]) == (4, 4)
    assert set(again) == LISTS - {"GET /account_numbers"}


async def test_a_list_of_many_accounts_that_is_too_long_is_not_tried_again(
    bank: IncreaseLedgerBank,
) -> None:
    account_ids = await open_many(bank)
    bank.running.bank.conduct.page_limit = MANY - 1

    listed, first = await read(bank, account_ids)
    again, second = await read(bank, account_ids)

    assert [account.id for account in listed] == account_ids[::-1]
    assert again == listed
    assert first["GET /accounts"] == 1
    assert second == {"GET /accounts/{id}": MANY, "GET /transactions": MANY}


async def test_many_accounts_are_read_one_by_one_beside_an_account_of_others_that_cannot_be_read(
    bank: IncreaseLedgerBank,
) -> None:
    account_ids = await open_many(bank)
    store = bank.running.bank.store
    others = await open_account(bank.increase)
    changed = store.get("account", others.id) | {"name": None}
    store.save(changed, beyond_sdk=True)

    listed, requests = await read(bank, account_ids)

    assert [account.id for account in listed] == account_ids[::-1]
    assert requests["GET /accounts/{id}"] == MANY


async def test_many_accounts_are_read_one_by_one_beside_interest_of_others_that_cannot_be_read(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_ids = await open_many(bank)
    others = await open_account(bank.increase)
    await pay_interest(bank, others.id, 100, datetime.now(UTC))
    of_another_shape = '{"id": "transaction_1"}'
    monkeypatch.setattr("tests.support.increase_bank.lists.transaction", lambda _: of_another_shape)

    listed, requests = await read(bank, account_ids)

    assert [account.id for account in listed] == account_ids[::-1]
    assert requests["GET /accounts/{id}"] == MANY


@pytest.mark.parametrize("most_read_singly", [MANY, MANY - 1])
async def test_while_a_list_cannot_be_asked_for_many_accounts_are_neither_read_one_by_one_nor_too_many(
    bank: IncreaseLedgerBank,
    monkeypatch: pytest.MonkeyPatch,
    most_read_singly: int,
) -> None:
    monkeypatch.setattr(f"{MODULES}.accounts.MOST_READ_SINGLY", most_read_singly)
    account_ids = await open_many(bank)
    bank.running.bank.faults.put(FaultRule(operation="GET /accounts", kind="error"))
    before = Counter(bank.running.bank.requests)

    with pytest.raises(ProviderError) as failed:
        await read(bank, account_ids)

    assert failed.value.detail == ProviderError().detail
    assert set(Counter(bank.running.bank.requests) - before) <= LISTS


async def test_more_accounts_than_can_be_read_one_by_one_are_refused_before_they_are(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULES}.accounts.MOST_READ_SINGLY", MANY - 1)
    account_ids = await open_many(bank)
    listed, _ = await read(bank, account_ids)
    bank.running.bank.conduct.page_limit = MANY - 1
    before = Counter(bank.running.bank.requests)

    with pytest.raises(ProviderError) as refused:
        await read(bank, account_ids)

    assert len(listed) == MANY
    assert "by its id" in refused.value.detail
    assert set(Counter(bank.running.bank.requests) - before) <= LISTS


async def test_accounts_whose_numbers_would_be_read_one_by_one_are_refused_too(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULES}.accounts.MOST_READ_SINGLY", MANY - 1)
    account_ids = await open_many(bank)
    await bank.increase.account_numbers.create(
        account_id=account_ids[0], name="Another", idempotency_key=uuid.uuid4().hex
    )
    bank.running.bank.conduct.page_limit = MANY
    before = Counter(bank.running.bank.requests)

    with pytest.raises(ProviderError) as refused:
        await read(bank, account_ids)

    assert "by its id" in refused.value.detail
    assert set(Counter(bank.running.bank.requests) - before) <= LISTS
