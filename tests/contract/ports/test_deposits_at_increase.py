"""Deposit locations at Increase: loads of IntraFi, each stored when it is read first."""

from __future__ import annotations

import time
from datetime import date, timedelta
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.errors import ProviderError, Unavailable
from services.ledger_read.models import Page
from tests.contract.ports.increase_ledger import IncreaseLedgerBank
from tests.contract.ports.ledger_banks import Opened
from tests.support.increase_bank import intrafi
from tests.support.increase_bank.faults import FaultRule
from tests.support.pace import pace

LEDGER = "services.ledger_read.adapters.increase.ledger"
INTRAFI = "GET /accounts/{id}/intrafi_balance"
WEDNESDAY = date(2025, 3, 12)
THURSDAY = WEDNESDAY + timedelta(days=1)


def soon() -> float:
    return time.time() + 10 * pace()


@pytest.fixture
def bank(increase_ledger_bank: IncreaseLedgerBank) -> IncreaseLedgerBank:
    return increase_ledger_bank


async def load_of(
    bank: IncreaseLedgerBank, opened: Opened, day: date, page: int = 1
) -> Page[DepositLocation]:
    command = ListDepositLocations(account_id=opened.account_id, load_date=day, page=page)
    return await bank.ledger.deposit_locations(command, soon())


async def test_a_load_of_deposit_locations_stays_as_it_was_when_it_was_first_read(
    bank: IncreaseLedgerBank,
) -> None:
    opened = await bank.open_funded_account()
    await bank.sweep(opened, WEDNESDAY)
    first = await bank.ledger.deposit_locations(
        ListDepositLocations(account_id=opened.account_id), soon()
    )
    await bank.post(opened, Decimal("5.00"), WEDNESDAY)

    await bank.sweep(opened, WEDNESDAY)
    again = await bank.ledger.deposit_locations(
        ListDepositLocations(account_id=opened.account_id), soon()
    )

    assert (again, again.total) == (first, 1)
    assert sum(row.balance for row in again.rows) == Decimal("1000.00")


async def test_a_load_that_is_stored_is_answered_while_increase_fails(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LEDGER + ".today_at_the_bank", lambda: THURSDAY)
    opened = await bank.open_funded_account()
    await bank.sweep(opened, WEDNESDAY)
    bank.running.bank.faults.put(FaultRule(operation=INTRAFI, kind="error"))

    first = await load_of(bank, opened, WEDNESDAY)
    asked = bank.running.bank.requests[INTRAFI]
    second = await load_of(bank, opened, WEDNESDAY, page=2)
    asked_of_the_second = bank.running.bank.requests[INTRAFI] - asked
    with pytest.raises((ProviderError, Unavailable)):
        await load_of(bank, opened, THURSDAY)

    assert (first.as_of_date, first.total, len(first.rows)) == (WEDNESDAY, 1, 1)
    assert (second.as_of_date, second.total, second.rows) == (WEDNESDAY, 1, [])
    assert asked_of_the_second == 0


async def test_reading_the_stored_load_of_the_day_before_stores_the_current_one(
    bank: IncreaseLedgerBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await bank.open_funded_account()
    await bank.sweep(opened, WEDNESDAY)
    for today in (THURSDAY, THURSDAY + timedelta(days=1)):
        monkeypatch.setattr(LEDGER + ".today_at_the_bank", lambda day=today: day)
        monkeypatch.setattr(intrafi, "business_day", lambda day=today: day)

        found = await load_of(bank, opened, today - timedelta(days=1))

        assert (found.as_of_date, found.total) == (today - timedelta(days=1), 1)


async def test_without_intrafi_at_increase_no_deposits_are_swept(bank: IncreaseLedgerBank) -> None:
    opened = await bank.open_funded_account()
    bank.running.bank.faults.put(FaultRule(operation=INTRAFI, kind="private_feature"))

    with capture_logs() as logs:
        found = await bank.ledger.deposit_locations(
            ListDepositLocations(account_id=opened.account_id), soon()
        )

    assert found == Page([], 0, None)
    assert [(log["event"], log["code"]) for log in logs] == [
        ("feature_not_enabled", "private_feature_error")
    ]
