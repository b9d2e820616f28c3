"""`GET /partner/reseller/ach/{account_id}`: ACH requests."""

from __future__ import annotations

from decimal import Decimal

from tests.e2e.ledger.hands import bank_with, new_account
from tests.support.live import Live


async def test_an_ach_request_lives_through_its_states(live: Live) -> None:
    account = await new_account(live)
    await account.post("1000.00")
    pending = await account.ach("1.10")
    submitted = await account.ach("20.20", "submit")
    settled = await account.ach("300.30", "submit", "settle")
    refused = await account.ach("4.40", "submit", "return:R03")
    returned = await account.ach("50.50", "submit", "settle", "return:R01")

    answer = await account.read("ach")

    shown = [
        (row["reference_id"], row["status"], row["amount"], row["return_code"])
        for row in answer.data
    ]
    assert shown == [
        (returned, "returned", "50.50", "R01"),
        (refused, "returned", "4.40", "R03"),
        (settled, "settled", "300.30", None),
        (submitted, "submitted", "20.20", None),
        (pending, "pending", "1.10", None),
    ]
    assert [row["return_description"] for row in answer.data[2:]] == [None] * 3
    assert answer.data[0]["return_description"] == "Insufficient Funds"
    assert answer.data[1]["return_description"]
    assert {row["originating_account_id"] for row in answer.data} == {account.account_id}
    assert all(row["created_at"] <= row["updated_at"] for row in answer.data)
    at_settlement = live.bank.books_ach_at_settlement
    held, total = ("20.20", "699.70") if at_settlement else ("1.10", "679.50")
    assert await account.balance() == {
        "available": Decimal(total) - Decimal(held),
        "held": Decimal(held),
        "total": Decimal(total),
    }
    history = (await account.read("transactions")).data
    postings = [(r["type"], str(r["amount"]), r["debit_credit_flag"]) for r in history]
    before_settlement = [("return", "4.40", False), ("ach", "4.40", True)]
    assert postings == [
        ("return", "50.50", False),
        ("ach", "50.50", True),
        *([] if at_settlement else before_settlement),
        ("ach", "300.30", True),
        *([] if at_settlement else [("ach", "20.20", True)]),
        (live.bank.deposit_type, "1000.00", False),
    ]


async def test_a_request_is_found_by_its_reference_in_its_account_only(live: Live) -> None:
    account, other = await new_account(live), await new_account(live)
    for funded in (account, other):
        await funded.post("10.00")
    mine, _ = await account.ach("1.00"), await account.ach("2.00")
    others = await other.ach("3.00")

    found = await account.read("ach", reference_id=mine)
    foreign = await account.read("ach", reference_id=others)
    unknown = await account.read("ach", reference_id="no'such%")

    assert [row["reference_id"] for row in found.data] == [mine]
    assert (foreign.data, unknown.data) == ([], [])


async def test_the_list_is_whole_however_small_the_providers_pages(live: Live) -> None:
    account = await new_account(live)
    await account.post("10.00")
    made = [await account.ach("1.00") for _ in range(10)]

    async with bank_with(live, page_limit=3):
        answer = await account.read("ach")

    assert [row["reference_id"] for row in answer.data] == made[::-1]
