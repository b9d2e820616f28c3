from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.provider_sandbox import calendar
from tests.integration.provider_sandbox.bank import Bank, Reply
from tests.integration.provider_sandbox.books import (
    balance,
    events_of,
    listed,
    transact,
    transacted,
)
from tests.integration.provider_sandbox.conftest import SANDBOX
from tests.support.infrastructure import Environment
from tests.support.stack import running_stack

# The last and the first microsecond of days in New York: before, at and after both changes of the clocks.
EDGES = {
    "2025-03-08": ("2025-03-08T05:00:00Z", "2025-03-09T04:59:59.999999Z"),
    "2025-03-09": ("2025-03-09T05:00:00Z", "2025-03-10T03:59:59.999999Z"),
    "2025-03-10": ("2025-03-10T04:00:00Z", "2025-03-11T03:59:59.999999Z"),
    "2025-11-02": ("2025-11-02T04:00:00Z", "2025-11-03T04:59:59.999999Z"),
    "2025-11-03": ("2025-11-03T05:00:00Z", "2025-11-04T04:59:59.999999Z"),
}
MOMENTS = [moment for pair in EDGES.values() for moment in pair]


async def test_a_transaction_is_shown_as_it_was_booked_and_told_in_the_feed(bank: Bank) -> None:
    opened = await bank.open_account()

    first = await transacted(bank, opened.account_id, "100.50")
    second = await transacted(
        bank, opened.account_id, "0.50", "debit", settled_at="2025-03-09T06:59:59.000001Z"
    )

    account = (await bank.get(f"/financial/accounts/{opened.account_id}")).body
    page = await listed(bank, opened.account_id, "transactions")
    assert page == {
        "transactions": [
            {key: first[key] for key in page["transactions"][0]},
            {
                "transaction_id": second["transaction_id"],
                "account_id": opened.account_id,
                "account_number": account["account_number"],
                "account_group": "deposit",
                "type": "withdrawal",
                "settled_at": "2025-03-09T06:59:59.000001Z",
                "counterparty_name": "Jane Roe",
                "counterparty_id": first["counterparty_id"],
                "amount": "0.50",
                "direction": "debit",
                "posting_id": second["posting_id"],
            },
        ],
        "total": 2,
        "page": 1,
        "limit": 50,
    }
    assert (first["type"], first["direction"], first["amount"]) == ("deposit", "credit", "100.50")
    assert (second["available"], second["total"], second["held"]) == ("100.00", "100.00", "0.00")
    told = [
        data for kind, data in await events_of(bank, opened.account_id) if "transaction" in kind
    ]
    assert told == page["transactions"]


async def test_a_deposit_is_a_transaction_too(bank: Bank) -> None:
    opened = await bank.open_account()

    deposited = (await bank.deposit(opened.account_id, "5")).body

    page = await listed(bank, opened.account_id, "transactions")
    assert [t["transaction_id"] for t in page["transactions"]] == [deposited["transaction_id"]]
    assert ("transaction.created", page["transactions"][0]) in await events_of(
        bank, opened.account_id
    )


async def test_money_leaves_only_as_far_as_it_is_available(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "10")

    too_much = await transact(bank, opened.account_id, "10.01", "debit")
    ach = (await bank.simulate("ach", {"account_id": opened.account_id, "amount": "4"})).body
    await bank.simulate(f"ach/{ach['reference_id']}/submit")
    beyond_the_hold = await transact(bank, opened.account_id, "6.01", "debit")
    all_that_is_left = await transact(bank, opened.account_id, "6.00", "debit")

    assert (too_much.status, too_much.code) == (409, "insufficient_funds")
    assert (beyond_the_hold.status, beyond_the_hold.code) == (409, "insufficient_funds")
    assert all_that_is_left.status == 200
    assert await balance(bank, opened.account_id) == {
        "available": "0.00",
        "held": "4.00",
        "total": "4.00",
    }


async def test_a_restricted_account_pays_fees_only_and_a_closed_one_nothing(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "10")

    await bank.simulate(f"accounts/{opened.account_id}/restrict")
    restricted = await transact(bank, opened.account_id, "1", "debit")
    fee = await transact(bank, opened.account_id, "1", "debit", type="fee")
    await bank.simulate(f"accounts/{opened.account_id}/close")
    closed = await transact(bank, opened.account_id, "1", "debit", type="fee")

    assert (restricted.status, restricted.code) == (409, "account_restricted")
    assert fee.status == 200
    assert (closed.status, closed.code) == (409, "account_closed")


async def test_interest_of_this_year_is_shown_with_its_yield_and_the_bank_has_paid_it(
    bank: Bank,
) -> None:
    opened = await bank.open_account()
    last_year = f"{calendar.today().year - 1}-06-15T12:00:00Z"
    await transacted(bank, opened.account_id, "36500", settled_at=last_year)
    await transacted(bank, opened.account_id, "7", type="interest", settled_at=last_year)
    paid = await transacted(bank, opened.account_id, "100.25", type="interest")
    fee = await transacted(bank, opened.account_id, "0.25", "debit", type="fee")

    account = (await bank.get(f"/financial/accounts/{opened.account_id}")).body

    assert account["interest_earned_year_to_date"] == "100.25"
    assert Decimal(account["annual_percentage_yield_earned"]) > Decimal("0.27")
    interest = await bank.truth("ledger", account_id="bank:interest")
    fees = await bank.truth("ledger", account_id="bank:fees")
    assert (paid["transaction_id"], "-100.25") in [
        (row["transaction_id"], row["amount"]) for row in interest
    ]
    assert (fee["transaction_id"], "0.25") in [
        (row["transaction_id"], row["amount"]) for row in fees
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"settled_at": "2099-01-01T00:00:00Z"},
        {"settled_at": "2025-01-01T00:00:00"},
        {"settled_at": "0001-01-01T00:00:00Z"},
        {"settled_at": 5},
        {"direction": "sideways"},
        {"type": "fee"},
        {"type": "gift"},
        {"amount": "0"},
        {"amount": "1.001"},
        {"counterparty_name": ""},
        {"colour": "red"},
    ],
    ids=str,
)
async def test_a_transaction_that_makes_no_sense_is_refused(
    bank: Bank, wrong: dict[str, Any]
) -> None:
    opened = await bank.open_account()

    body = {"account_id": opened.account_id, "amount": "1", "direction": "credit", **wrong}
    reply = await bank.simulate("transactions", body)

    assert (reply.status, reply.code) == (422, "invalid")
    assert (await listed(bank, opened.account_id, "transactions"))["total"] == 0


async def test_nothing_is_booked_in_the_future(bank: Bank) -> None:
    opened = await bank.open_account()
    soon = datetime.now(UTC) + timedelta(minutes=5)

    reply = await transact(bank, opened.account_id, "1", settled_at=soon.isoformat())

    assert (reply.status, reply.code) == (422, "invalid")


async def test_both_ends_of_a_range_are_whole_days_in_new_york(bank: Bank) -> None:
    opened = await bank.open_account()
    for moment in MOMENTS:
        await transacted(bank, opened.account_id, "1", settled_at=moment)

    async def between(**parameters: str) -> list[datetime]:
        page = await listed(bank, opened.account_id, "transactions", **parameters)
        assert page["total"] == len(page["transactions"])
        return [datetime.fromisoformat(t["settled_at"]) for t in page["transactions"]]

    newest_first = sorted(map(datetime.fromisoformat, MOMENTS), reverse=True)
    assert await between() == newest_first
    for day, (first, last) in EDGES.items():
        begin, end = datetime.fromisoformat(first), datetime.fromisoformat(last)
        assert await between(start=day, end=day) == [end, begin]
        assert await between(start=day) == [m for m in newest_first if m >= begin]
        assert await between(end=day) == [m for m in newest_first if m <= end]
    assert await between(start="2025-04-01", end="2025-10-31") == []


async def test_one_transaction_is_found_by_its_id_within_the_other_filters(bank: Bank) -> None:
    opened, other = await bank.open_account(), await bank.open_account()
    booked = await transacted(bank, opened.account_id, "1", settled_at=EDGES["2025-03-09"][0])
    await transacted(bank, opened.account_id, "2")
    wanted = booked["transaction_id"]

    async def found(account_id: str, **parameters: Any) -> tuple[int, list[str]]:
        page = await listed(bank, account_id, "transactions", transaction_id=wanted, **parameters)
        return page["total"], [t["transaction_id"] for t in page["transactions"]]

    assert await found(opened.account_id) == (1, [wanted])
    assert await found(opened.account_id, start="2025-03-09", end="2025-03-09") == (1, [wanted])
    assert await found(opened.account_id, end="2025-03-08") == (0, [])
    assert await found(opened.account_id, page=2) == (1, [])
    assert await found(other.account_id) == (0, [])


@pytest.mark.parametrize(
    "parameters",
    [
        {"limit": 0},
        {"limit": 201},
        {"page": 0},
        {"page": "x"},
        {"start": "2025-3-1"},
        {"start": "2025-02-30"},
        {"start": "2025-03-02", "end": "2025-03-01"},
        {"colour": "red"},
    ],
    ids=str,
)
async def test_a_question_that_makes_no_sense_is_refused(
    bank: Bank, parameters: dict[str, Any]
) -> None:
    opened = await bank.open_account()

    reply = await bank.get(f"/financial/accounts/{opened.account_id}/transactions", **parameters)

    assert (reply.status, reply.code) == (400, "invalid")


async def test_an_unknown_account_has_no_lists(bank: Bank) -> None:
    lists = ("transactions", "ach", "statements", "deposit-locations", "settlement-calculations")

    replies: list[Reply] = [
        await bank.get(f"/financial/accounts/acc_none/{what}") for what in lists
    ]

    assert {(reply.status, reply.code) for reply in replies} == {(404, "not_found")}


async def test_a_smaller_page_than_asked_for_is_answered_with_its_own_limit(
    fresh_environment: Environment, tmp_path: Any
) -> None:
    async with (
        running_stack(
            fresh_environment, tmp_path, [SANDBOX], BANKSIDE_SANDBOX_PAGE_LIMIT="2"
        ) as running,
        aiohttp.ClientSession() as session,
    ):
        tokens = running.environment.secrets.provider_tokens
        bank = Bank(session, running.sandbox_url, tokens)
        opened = await bank.open_account()
        for _ in range(3):
            await transacted(bank, opened.account_id, "1")

        page = await listed(bank, opened.account_id, "transactions", limit=100, page=2)

        assert (page["limit"], page["page"], page["total"], len(page["transactions"])) == (
            2,
            2,
            3,
            1,
        )


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from([*MOMENTS, "2025-03-09T05:00:00.000001Z", "2025-03-09T05:04:59.999999Z"]),
        st.sampled_from(["credit", "debit"]),
        st.decimals(min_value="0.01", max_value="99.99", places=2),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(entries=ENTRIES, limit=st.integers(min_value=1, max_value=7))
async def test_pages_make_up_the_history_and_balances_its_sum_whatever_happened(
    bank: Bank, books: asyncpg.Connection, entries: list[tuple[str, str, Decimal, bool]], limit: int
) -> None:
    opened = await bank.open_account()
    for moment, direction, amount, by_ach in entries:
        if by_ach and direction == "debit":
            request = {"account_id": opened.account_id, "amount": str(amount)}
            reference = (await bank.simulate("ach", request)).body["reference_id"]
            await bank.simulate(f"ach/{reference}/submit")
            if amount > 50:
                await bank.simulate(f"ach/{reference}/settle")
        else:
            await transact(bank, opened.account_id, str(amount), direction, settled_at=moment)

    postings = await bank.truth("ledger", account_id=opened.account_id)
    pages: list[Any] = []
    number = 1
    while page := await listed(bank, opened.account_id, "transactions", limit=limit, page=number):
        assert page["total"] == len(postings)
        if not page["transactions"]:
            break
        assert len(page["transactions"]) == limit or number * limit >= len(postings)
        pages += page["transactions"]
        number += 1
    newest_first = [(t["settled_at"], t["transaction_id"]) for t in pages]
    assert newest_first == sorted(newest_first, reverse=True)
    assert sorted((t["transaction_id"], signed(t)) for t in pages) == sorted(
        (p["transaction_id"], Decimal(p["amount"])) for p in postings
    )
    shown = {key: Decimal(value) for key, value in (await balance(bank, opened.account_id)).items()}
    held = await books.fetchval(
        "SELECT coalesce(sum(amount), 0) FROM ach_request"
        " WHERE account_id = $1 AND status = 'submitted'",
        opened.account_id,
    )
    assert shown["total"] == sum((Decimal(p["amount"]) for p in postings), Decimal(0))
    assert shown["available"] + shown["held"] == shown["total"]
    assert shown["held"] == held
    assert shown["available"] >= 0


def signed(transaction: dict[str, str]) -> Decimal:
    amount = Decimal(transaction["amount"])
    return -amount if transaction["direction"] == "debit" else amount


async def test_postings_are_listed_in_the_order_in_which_they_were_posted(bank: Bank) -> None:
    opened, other = await bank.open_account(), await bank.open_account()
    posted = []
    for day in ("2025-03-11", "2025-03-09", "2025-03-10"):
        at = f"{day}T12:00:00Z"
        posted.append(await transacted(bank, opened.account_id, "1.00", settled_at=at))
        await transacted(bank, other.account_id, "1.00", settled_at=at)
    path = f"/financial/accounts/{opened.account_id}/postings?limit=2"

    first = (await bank.get(path)).body
    last = (await bank.get(f"{path}&cursor={first['next_cursor']}")).body
    unknown = await bank.get("/financial/accounts/acc_unknown/postings")
    foreign = await bank.get(f"{path}&cursor=1.2")

    shown = {key: posted[0][key] for key in first["postings"][0]}
    assert [row["transaction_id"] for row in first["postings"] + last["postings"]] == [
        row["transaction_id"] for row in reversed(posted)
    ]
    assert (last["postings"], last["next_cursor"]) == ([shown], None)
    assert (unknown.status, foreign.status) == (404, 400)
