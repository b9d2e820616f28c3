"""What tests of the whole stack ask of the fake, in the sandbox's words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import aiohttp
import pytest
from increase import AsyncIncrease, InvalidOperationError

from tests.support.bank_at_increase import BankAtIncrease
from tests.support.increase_bank.server import RunningBank
from tests.support.increase_clients import give_number, link_external, open_account, send_wire


@pytest.fixture
async def bank(running: RunningBank) -> AsyncIterator[BankAtIncrease]:
    async with aiohttp.ClientSession() as session:
        yield BankAtIncrease(session, running.url, "a-key-that-may-all")


async def test_money_and_wires_are_told_as_the_sandbox_tells_them(
    running: RunningBank, increase: AsyncIncrease, bank: BankAtIncrease
) -> None:
    running.bank.conduct.wire_seconds = 3600.0
    account, external = await open_account(increase), await link_external(increase)
    await give_number(increase, account)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    book = {"account_id": account.id, "counterparty_name": "Wharf Properties"}

    await bank.simulate("history", account_id=account.id, transactions=20, days=9)
    await bank.simulate("transactions", amount="7.00", direction="credit", **book)
    await bank.simulate(
        "transactions", amount="1.25", direction="debit", type="fee", settled_at=yesterday, **book
    )
    await bank.deposit(account.id, Decimal("10.00"))
    for key, step in (("one", "complete"), ("two", "reject"), ("three", "complete")):
        await send_wire(increase, account, external, 100, key)
        await bank.simulate(f"wires/{key}/{step}")
    await bank.simulate("wires/three/return")
    made = await bank.simulate("ach", account_id=account.id, amount="2.00")
    for step, more in (("submit", {}), ("settle", {}), ("return", {"return_code": "R01"})):
        await bank.simulate(f"ach/{made['reference_id']}/{step}", **more)

    wires = {row["transaction_id"]: row["state"] for row in await bank.wires(account.id)}
    assert wires == {"one": "completed", "two": "rejected", "three": "returned"}
    ledger = await bank.ledger(account.id)
    assert len(ledger) == 20 + 3 + 3 + 2
    assert {"one", "three"} <= {row["transaction_id"] for row in ledger}
    balance = await increase.accounts.balance(account.id)
    total = sum((Decimal(row["amount"]) for row in ledger), Decimal(0))
    assert total == Decimal(balance.current_balance) / 100
    assert await bank.violations() == []


async def test_accounts_are_restricted_and_closed_and_deposits_swept(
    increase: AsyncIncrease, bank: BankAtIncrease
) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await give_number(increase, account)
    await bank.deposit(account.id, Decimal("10.00"))

    swept = await bank.simulate("deposit-locations", account_id=account.id)
    await bank.simulate("statements", account_id=account.id, year=2025, month=3)
    await bank.change(account.id, "restrict")
    with pytest.raises(InvalidOperationError):
        await send_wire(increase, account, external, 100, "one")
    await bank.change(account.id, "unrestrict")
    await send_wire(increase, account, external, 100, "one")
    await bank.change(account.id, "close")

    assert swept["total_balance"] == 1000
    [statement] = (await increase.account_statements.list(account_id=account.id)).data
    assert statement.statement_period_start == datetime(2025, 3, 1, 5, tzinfo=UTC)
    assert (await increase.accounts.retrieve(account.id)).status == "closed"


async def test_faults_are_ordered_by_the_sandbox_s_names(
    running: RunningBank, increase: AsyncIncrease, bank: BankAtIncrease
) -> None:
    await bank.fault("core", "open_account", "refuse", times=1)

    with pytest.raises(InvalidOperationError):
        await open_account(increase)
    assert await bank.faults() == []
    await bank.fault("core", "*", "error")
    await bank.heal()
    await open_account(increase)
