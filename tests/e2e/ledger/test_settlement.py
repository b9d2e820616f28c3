"""`GET /customer/accounts/settlement-calculations/{account_id}`: settlement calculations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.ledger.hands import Account, bank_with, new_account
from tests.support.live import Live
from tests.support.waiting import eventually

WHAT = "settlement-calculations"


async def with_reserve(live: Live) -> tuple[Account, str]:
    """An account, and the number of its reserve account."""
    live.bank.needs("has_reserves")
    account = await new_account(live)
    reserve = await live.bank.simulate(f"accounts/{account.account_id}/reserve")
    return account, str(reserve["account_number"])


async def calculated(account: Account, day: str, amount: str = "1.00", **more: Any) -> None:
    await account.live.bank.simulate(
        WHAT, account_id=account.account_id, settlement_date=day, amount=amount, **more
    )


def days(rows: list[dict[str, Any]]) -> list[str]:
    return [row["settlement_date"] for row in rows]


async def test_without_a_reserve_account_there_is_null(quiet: Account) -> None:
    answer = await quiet.read(WHAT, token_type="rrc", settlement_date="2025-03-03")

    assert (answer.status, answer.body["data"]) == (200, None)


async def test_once_there_is_a_reserve_account_there_is_a_list(live: Live) -> None:
    live.bank.needs("has_reserves")
    account = await new_account(live)
    query = {"token_type": "rrc", "settlement_date": "2025-03-03"}

    without = await account.read(WHAT, **query)
    await live.bank.simulate(f"accounts/{account.account_id}/reserve")
    with_one = await account.read(WHAT, **query)

    assert (without.status, without.body["data"]) == (200, None)
    assert (with_one.status, with_one.body["data"]) == (200, [])


async def test_calculations_are_shown_from_their_day_on_newest_first(live: Live) -> None:
    account, reserve = await with_reserve(live)
    await calculated(account, "2025-03-03", "-12.30")
    await calculated(account, "2025-03-04", "1234567890123456.70", ach_file="PPD")
    await calculated(account, "2025-03-05")

    answer = await account.read(WHAT, token_type="rrc", settlement_date="2025-03-03")
    later = await account.read(WHAT, token_type="rrc", settlement_date="2025-03-04")
    none = await account.read(WHAT, token_type="rrc", settlement_date="2025-03-06")
    ever = await account.read(WHAT, token_type="rrc", settlement_date="0001-01-01")

    assert days(answer.data) == ["2025-03-05", "2025-03-04", "2025-03-03"]
    assert answer.data[2] | {"created_at": None} == {
        "reserve_account_number": reserve,
        "amount": "-12.30",
        "ach_file": None,
        "created_at": None,
        "settlement_date": "2025-03-03",
    }
    assert (answer.data[1]["amount"], answer.data[1]["ach_file"]) == ("1234567890123456.70", "PPD")
    assert answer.data[0]["created_at"].endswith("Z")
    assert "pagination" not in answer.body
    assert days(later.data) == ["2025-03-05", "2025-03-04"]
    assert none.data == []
    assert ever.data == answer.data


async def test_the_source_reaches_the_provider(live: Live) -> None:
    account, _ = await with_reserve(live)
    await calculated(account, "2025-03-03", "1.00", source="rail a")
    await calculated(account, "2025-03-03", "2.00", source="rail b")
    query = {"token_type": "rrc", "settlement_date": "2025-03-03"}

    of_a = await account.read(WHAT, {"source": "rail a"}, **query)
    of_b = await account.read(WHAT, {"Source": "rail b"}, **query)
    without = await account.read(WHAT, **query)
    empty = await account.read(WHAT, {"source": ""}, **query)
    too_long = await account.read(WHAT, {"source": "x" * 256}, **query)

    assert [row["amount"] for row in of_a.data] == ["1.00"]
    assert [row["amount"] for row in of_b.data] == ["2.00"]
    assert [row["amount"] for row in without.data] == ["2.00", "1.00"]
    assert empty.data == without.data
    assert [(e["loc"], e["type"]) for e in too_long.body["detail"]] == [
        (["header", "source"], "string_pattern_mismatch")
    ]


async def test_the_list_is_whole_however_small_the_providers_pages(live: Live) -> None:
    account, _ = await with_reserve(live)
    business_days = [*range(24, 29), 31]
    for day in business_days:
        for _ in range(2):
            await calculated(account, f"2025-03-{day}")

    async with bank_with(live, page_limit=1):
        answer = await account.read(WHAT, token_type="rrc", settlement_date="2025-03-24")

    newest_first = [f"2025-03-{day}" for day in business_days[::-1] for _ in range(2)]
    assert days(answer.data) == newest_first


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (
            {"token_type": "abc", "settlement_date": "2025-03-03"},
            [("token_type", "literal_error")],
        ),
        ({"token_type": "rrc"}, [("settlement_date", "missing")]),
        ({}, [("settlement_date", "missing"), ("token_type", "missing")]),
        (
            {"token_type": "RRC", "settlement_date": "03/03/2025"},
            [("settlement_date", "date_parsing"), ("token_type", "literal_error")],
        ),
        (
            {"token_type": "rrc", "settlement_date": "2025-03-03", "source": "a"},
            [("source", "extra_forbidden")],
        ),
    ],
)
async def test_what_is_not_allowed_is_told_all_at_once(
    quiet: Account, query: dict[str, str], wrong: list[tuple[str, str]]
) -> None:
    answer = await quiet.read(WHAT, **query)

    assert answer.status == 422
    found = [(tuple(error["loc"]), error["type"]) for error in answer.body["detail"]]
    assert sorted(found) == [(("query", name), kind) for name, kind in wrong]


async def test_the_reserve_account_is_the_customers_too(live: Live) -> None:
    account, reserve = await with_reserve(live)
    customer = await live.of_customer(account.customer_id)

    async def listed() -> Any:
        accounts = (await customer.get("/customer/accounts")).data["accounts"]
        groups = {row["account_number"]: row["account_group"] for row in accounts}
        return groups if reserve in groups else None

    groups = await eventually("the reserve account is listed", listed)

    assert sorted(groups.values()) == ["deposit", "reserve"]
    assert groups[reserve] == "reserve"
