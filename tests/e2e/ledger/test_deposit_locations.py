"""`GET /customer/accounts/deposit-locations/{account_id}`: where the account's deposits lie."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.e2e.ledger.hands import Account, bank_with, new_account
from tests.support.live import Live

MONDAY, TUESDAY, WEDNESDAY = "2025-03-03", "2025-03-04", "2025-03-05"
INSURED = Decimal(250_000)


async def swept(account: Account, day: str = MONDAY) -> str:
    """A load; its day, which is the one that was wanted where the bank can be told."""
    order = {"account_id": account.account_id, "load_date": day}
    return str((await account.live.bank.simulate("deposit-locations", **order))["as_of_date"])


async def test_before_any_load_there_is_neither_a_list_nor_a_day(live: Live) -> None:
    account = await new_account(live)
    await account.post("100.00")

    answer = await account.read("deposit-locations")
    of_a_day = await account.read("deposit-locations", load_date=MONDAY)

    for found in (answer, of_a_day):
        assert found.body == {
            "message": "Deposit locations found",
            "data": [],
            "pagination": {"limit": 50, "total": 0, "offset": 0},
            "as_of_date": None,
        }


async def test_the_balances_add_up_to_the_cent_and_no_bank_holds_too_much(live: Live) -> None:
    account = await new_account(live)
    await account.post("1234567.89")
    day = await swept(account)

    answer = await account.read("deposit-locations")

    balances = [Decimal(row["balance"]) for row in answer.data]
    assert sum(balances) == Decimal("1234567.89") == (await account.balance())["total"]
    assert len(balances) == 5
    assert max(balances) == INSURED
    ids = [row["location_id"] for row in answer.data]
    assert ids == sorted(set(ids))
    assert answer.body["as_of_date"] == day
    assert answer.body["pagination"] == {"limit": 50, "total": 5, "offset": 0}
    for row in answer.data:
        assert set(row) == {"location_id", "name", "city_and_state", "balance"}
        city, _, state = row["city_and_state"].rpartition(", ")
        assert city
        assert len(state) == 2


async def test_a_load_is_of_its_day_and_the_latest_is_shown_without_one(live: Live) -> None:
    live.bank.needs("loads_any_day")
    account = await new_account(live)
    for day, more in ((MONDAY, "100.00"), (WEDNESDAY, "23.00")):
        await account.post(more)
        await swept(account, day)

    latest = await account.read("deposit-locations")
    monday = await account.read("deposit-locations", load_date=MONDAY)
    tuesday = await account.read("deposit-locations", load_date=TUESDAY)
    long_ago = await account.read("deposit-locations", load_date="1970-01-01")

    def total(rows: list[dict[str, Decimal]]) -> Decimal:
        return sum((Decimal(row["balance"]) for row in rows), Decimal(0))

    assert (latest.body["as_of_date"], total(latest.data)) == (WEDNESDAY, Decimal("123.00"))
    assert (monday.body["as_of_date"], total(monday.data)) == (MONDAY, Decimal("100.00"))
    assert (tuesday.body["as_of_date"], tuesday.data) == (None, [])
    assert (long_ago.body["as_of_date"], long_ago.data) == (None, [])


async def test_a_load_of_nothing_has_its_day(live: Live) -> None:
    account = await new_account(live)
    day = await swept(account)

    answer = await account.read("deposit-locations")

    assert (answer.data, answer.body["as_of_date"]) == ([], day)


@pytest.mark.parametrize("page_limit", [100, 3])
async def test_pages_have_their_offset(live: Live, page_limit: int) -> None:
    account = await new_account(live)
    await account.post("2600000.00")
    day = await swept(account)
    whole = [row["location_id"] for row in (await account.read("deposit-locations")).data]

    async with bank_with(live, page_limit=page_limit):
        pages = [
            await account.read("deposit-locations", page=page, limit=4, load_date=day)
            for page in (1, 2, 3, 4)
        ]
        far = await account.read("deposit-locations", page=1_000_000_000, limit=100)

    assert len(whole) == 11
    assert [[row["location_id"] for row in page.data] for page in pages] == [
        whole[:4],
        whole[4:8],
        whole[8:],
        [],
    ]
    assert [page.body["pagination"] for page in pages] == [
        {"limit": 4, "total": 11, "offset": offset} for offset in (0, 4, 8, 12)
    ]
    assert {page.body["as_of_date"] for page in pages} == {day}
    assert (far.data, far.body["pagination"]["offset"]) == ([], 99_999_999_900)


@pytest.mark.parametrize(
    ("query", "name", "kind"),
    [
        ({"page": "0"}, "page", "greater_than_equal"),
        ({"limit": "0"}, "limit", "greater_than_equal"),
        ({"limit": "101"}, "limit", "less_than_equal"),
        ({"load_date": "2025-03-32"}, "load_date", "date_parsing"),
    ],
)
async def test_a_parameter_of_deposit_locations_that_is_not_allowed_is_named(
    quiet: Account, query: dict[str, str], name: str, kind: str
) -> None:
    answer = await quiet.read("deposit-locations", **query)

    assert answer.status == 422
    assert [(error["loc"], error["type"]) for error in answer.body["detail"]] == [
        (["query", name], kind)
    ]
