from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.provider_sandbox import calendar
from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.books import events_of, listed, transacted
from tests.integration.provider_sandbox.conftest import SANDBOX
from tests.support.infrastructure import Environment
from tests.support.stack import running_stack

LIMIT = Decimal(250_000)


async def load(bank: Bank, account_id: str, load_date: str | None = None) -> Any:
    body = {"account_id": account_id} | ({"load_date": load_date} if load_date else {})
    return await bank.simulate("deposit-locations", body)


async def all_locations(bank: Bank, account_id: str, **parameters: Any) -> list[Any]:
    found: list[Any] = []
    page = 1
    while True:
        part = await listed(bank, account_id, "deposit-locations", page=page, limit=3, **parameters)
        found += part["locations"]
        if len(found) >= part["total"]:
            return found
        page += 1


async def test_what_is_swept_lies_at_program_banks_to_the_cent(bank: Bank) -> None:
    opened = await bank.open_account()
    before = await listed(bank, opened.account_id, "deposit-locations")
    await transacted(bank, opened.account_id, "2000000.07")

    days = [calendar.latest_business_day(calendar.today())]
    loaded = await load(bank, opened.account_id)
    days.append(calendar.latest_business_day(calendar.today()))

    today = loaded.body["as_of_date"]
    assert today in {day.isoformat() for day in days}
    nothing = {"locations": [], "total": 0, "page": 1, "limit": 50, "as_of_date": None}
    assert before == {"account_id": opened.account_id, **nothing}
    assert (loaded.body["locations"], loaded.body["balance"]) == (9, "2000000.07")
    locations = await all_locations(bank, opened.account_id)
    ids = [location["location_id"] for location in locations]
    assert ids == sorted(set(ids))
    balances = [Decimal(location["balance"]) for location in locations]
    assert sum(balances) == Decimal("2000000.07")
    assert max(balances) <= LIMIT
    assert all(location["name"] and location["city"] for location in locations)
    page = await listed(bank, opened.account_id, "deposit-locations")
    assert (page["as_of_date"], page["total"]) == (today, 9)
    assert (
        "deposit_locations.updated",
        {"as_of_date": today, "locations": 9, "balance": "2000000.07"},
    ) in await events_of(bank, opened.account_id)


async def test_a_business_day_is_loaded_once_and_each_load_is_kept(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "10")

    replies = [await load(bank, opened.account_id, "2025-07-03")]
    await transacted(bank, opened.account_id, "5")
    replies += [await load(bank, opened.account_id, day) for day in ("2025-07-07", "2025-07-03")]

    assert [reply.status for reply in replies] == [200, 200, 409]
    assert replies[2].code == "already_loaded"
    latest = await listed(bank, opened.account_id, "deposit-locations")
    first = await listed(bank, opened.account_id, "deposit-locations", load_date="2025-07-03")
    none = await listed(bank, opened.account_id, "deposit-locations", load_date="2025-07-02")
    assert (latest["as_of_date"], latest["locations"][0]["balance"]) == ("2025-07-07", "15.00")
    assert (first["as_of_date"], first["locations"][0]["balance"]) == ("2025-07-03", "10.00")
    assert (none["as_of_date"], none["locations"], none["total"]) == (None, [], 0)


@pytest.mark.parametrize("day", ["2025-07-04", "2025-07-05", "2021-07-05", "2099-01-02", "x"])
async def test_no_other_day_is_loaded(bank: Bank, day: str) -> None:
    opened = await bank.open_account()

    reply = await load(bank, opened.account_id, day)

    assert (reply.status, reply.code) == (422, "invalid")


async def test_floor_and_limit_are_settings(fresh_environment: Environment, tmp_path: Path) -> None:
    settings = {
        "BANKSIDE_SANDBOX_SWEEP_FLOOR": "100",
        "BANKSIDE_SANDBOX_SWEEP_BANK_LIMIT": "10.50",
    }
    async with (
        running_stack(fresh_environment, tmp_path, [SANDBOX], **settings) as running,
        aiohttp.ClientSession() as session,
    ):
        bank = Bank(session, running.sandbox_url, running.environment.secrets.provider_tokens)
        opened = await bank.open_account()
        await transacted(bank, opened.account_id, "100")
        below = await load(bank, opened.account_id, "2025-07-02")
        await transacted(bank, opened.account_id, "25")
        above = await load(bank, opened.account_id, "2025-07-03")

        assert (below.body["locations"], below.body["balance"]) == (0, "0.00")
        assert (above.body["locations"], above.body["balance"]) == (3, "25.00")
