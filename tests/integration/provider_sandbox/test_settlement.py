from __future__ import annotations

from typing import Any

import pytest

from tests.integration.provider_sandbox.bank import Bank, Reply
from tests.integration.provider_sandbox.books import listed


async def calculate(bank: Bank, account_id: str, day: str, amount: str, **more: Any) -> Reply:
    body = {"account_id": account_id, "settlement_date": day, "amount": amount, "ach_file": None}
    return await bank.simulate("settlement-calculations", body | more)


async def test_an_account_without_a_reserve_has_none(bank: Bank) -> None:
    opened = await bank.open_account()

    refused = await calculate(bank, opened.account_id, "2025-07-03", "1")

    assert (refused.status, refused.code) == (409, "no_reserve_account")
    assert await listed(bank, opened.account_id, "settlement-calculations") == {
        "account_id": opened.account_id,
        "reserve_account_number": None,
        "calculations": [],
        "next_cursor": None,
    }


async def test_a_reserve_is_opened_once_for_the_same_customer(bank: Bank) -> None:
    opened = await bank.open_account()

    first = await bank.simulate(f"accounts/{opened.account_id}/reserve")
    again = await bank.simulate(f"accounts/{opened.account_id}/reserve")
    of_reserve = await bank.simulate(f"accounts/{first.body['account_id']}/reserve")

    assert first.body == again.body
    assert first.body["account_group"] == "reserve"
    assert first.body["customer_id"] == opened.customer_id
    assert first.body["account_id"] != opened.account_id
    assert (of_reserve.status, of_reserve.code) == (409, "not_a_deposit_account")


async def test_calculations_are_listed_newest_first_in_pages_from_a_day_on(bank: Bank) -> None:
    opened = await bank.open_account()
    reserve = (await bank.simulate(f"accounts/{opened.account_id}/reserve")).body
    for day, amount in (
        ("2025-07-03", "-12.30"),
        ("2025-07-07", "0"),
        ("2025-07-03", "5"),
        ("2025-07-02", "1"),
    ):
        reply = await calculate(bank, opened.account_id, day, amount, ach_file="PPD")
        assert reply.status == 200, reply

    read: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = await listed(
            bank,
            opened.account_id,
            "settlement-calculations",
            limit=1,
            **{"from": "2025-07-03"},
            **cursor,
        )
        assert page["reserve_account_number"] == reserve["account_number"]
        read += page["calculations"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}

    assert [(c["settlement_date"], c["amount"], c["ach_file"]) for c in read] == [
        ("2025-07-07", "0.00", "PPD"),
        ("2025-07-03", "5.00", "PPD"),
        ("2025-07-03", "-12.30", "PPD"),
    ]


async def test_a_source_gets_its_own_and_those_that_are_for_all(bank: Bank) -> None:
    opened = await bank.open_account()
    await bank.simulate(f"accounts/{opened.account_id}/reserve")
    await calculate(bank, opened.account_id, "2025-07-01", "1")
    await calculate(bank, opened.account_id, "2025-07-02", "2", source="treasury")
    await calculate(bank, opened.account_id, "2025-07-03", "3", source="cards")
    path = f"/financial/accounts/{opened.account_id}/settlement-calculations"

    async def amounts(**headers: str) -> list[str]:
        reply = await bank.call("GET", path, headers=bank.authorization("GET", path) | headers)
        return [calculation["amount"] for calculation in reply.body["calculations"]]

    assert await amounts() == ["3.00", "2.00", "1.00"]
    assert await amounts(Source="treasury") == ["2.00", "1.00"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"settlement_date": "2025-07-04"},
        {"settlement_date": "2025-07-05"},
        {"amount": "1.001"},
        {"amount": True},
        {"ach_file": ""},
    ],
    ids=str,
)
async def test_a_calculation_that_makes_no_sense_is_refused(
    bank: Bank, wrong: dict[str, Any]
) -> None:
    opened = await bank.open_account()
    await bank.simulate(f"accounts/{opened.account_id}/reserve")

    body = {
        "account_id": opened.account_id,
        "settlement_date": "2025-07-03",
        "amount": "1",
        "ach_file": None,
    }
    reply = await bank.simulate("settlement-calculations", body | wrong)

    assert (reply.status, reply.code) == (422, "invalid")
