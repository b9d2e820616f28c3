"""These tests share one running stack per worker."""

from __future__ import annotations

import dataclasses

import pytest

from tests.e2e.ledger.hands import Account, new_account
from tests.support.live import Live


@pytest.fixture(scope="package")
def quiet_accounts() -> dict[str, Account]:
    return {}


@pytest.fixture
async def quiet(live: Live, quiet_accounts: dict[str, Account]) -> Account:
    """An account in which nothing happens, shared by the tests of what is refused."""
    if "mine" not in quiet_accounts:
        quiet_accounts["mine"] = await new_account(live)
    return dataclasses.replace(quiet_accounts["mine"], live=live)


@pytest.fixture
async def others(live: Live, quiet_accounts: dict[str, Account]) -> list[Account]:
    """Accounts of another customer of the same partner, and of another partner's customer."""
    if "neighbour" not in quiet_accounts:
        quiet_accounts["neighbour"] = await new_account(live)
        stranger = await live.of_tenant("ledger-stranger")
        quiet_accounts["stranger"] = await new_account(live, stranger)
    names = ("neighbour", "stranger")
    return [dataclasses.replace(quiet_accounts[name], live=live) for name in names]
