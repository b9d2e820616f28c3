"""What the story makes happen at Increase, told to its fake."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import aiohttp
import pytest

from libs.demo.ledger import BUSINESS
from libs.providers.simulation import SimulationFailed, open_bank
from tests.support.increase_bank.server import running_bank
from tests.support.increase_clients import client_of, give_number, open_account


async def test_money_comes_and_goes_and_lies_at_banks_that_insure_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BANKSIDE_FINANCIAL_PROVIDER", "increase")
    monkeypatch.setenv("BANKSIDE_INCREASE_FAKE_KEY", "a-key")
    shown: list[str] = []

    async with (
        running_bank(tmp_path, {"a-key": "everything"}) as running,
        client_of(running.url, "a-key") as increase,
        aiohttp.ClientSession() as session,
    ):
        account = await open_account(increase)
        await give_number(increase, account)
        bank = open_bank(
            session,
            lambda _: running.url,
            lambda method, path, *_: shown.append(f"{method} {path}"),
        )
        await bank.deposit(account.id, Decimal("12.34"), "Harbor Café")
        for payment in BUSINESS:
            await bank.move(account.id, *payment)
        await bank.make_statement(account.id, datetime.now(UTC).date())
        await bank.sweep(account.id)
        await bank.sweep(account.id)
        with pytest.raises(SimulationFailed, match="with 404"):
            await bank.make_statement("account_of_no_one", datetime.now(UTC).date())

        balance = await increase.accounts.balance(account.id)
        spread = await increase.intrafi_balances.intrafi_balance(account.id)
        statements = await increase.account_statements.list(account_id=account.id)
        assert running.bank.violations == []
    assert balance.current_balance == 1234 + 61_234_567 - 184_000 - 9_650
    assert spread.total_balance == balance.current_balance
    assert len(statements.data) == 1
    assert "POST /simulations/inbound_ach_transfers" in shown


async def test_at_increase_itself_the_story_says_that_it_needs_the_fake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANKSIDE_FINANCIAL_PROVIDER", "increase")
    monkeypatch.delenv("BANKSIDE_INCREASE_FAKE_KEY", raising=False)

    async with aiohttp.ClientSession() as session:
        with pytest.raises(SimulationFailed, match="BANK=increase-fake"):
            open_bank(session, lambda _: "", lambda *_: None)
