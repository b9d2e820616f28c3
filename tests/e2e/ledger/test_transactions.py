"""`GET /customer/accounts/transactions/{account_id}`: an account's transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.ledger.hands import Account, bank_with, new_account
from tests.support.live import Live

NEW_YORK = ZoneInfo("America/New_York")
TICK = timedelta(microseconds=1)


async def test_a_transaction_is_shown_in_its_read_shape_with_every_digit(live: Live) -> None:
    account = await new_account(live)
    credit = await account.post("1234567890123456.70", counterparty_name="Harbor Café")
    debit = await account.post("0.07", "debit", type="fee", counterparty_name="The bank")

    answer = await account.read("transactions")

    postings = {row["transaction_id"]: row for row in await live.bank.ledger(account.account_id)}
    expected = {
        "account_number": account.number,
        "account_group": "deposit",
    }
    shown = [
        {name: row[name] for name in row.keys() - {"settled_at", "counterparty_id", "tx_uuid"}}
        for row in answer.data
    ]
    assert shown == [
        {
            **expected,
            "transaction_id": debit,
            "type": "fee",
            "counterparty_name": "The bank",
            "amount": Decimal("0.07"),
            "debit_credit_flag": True,
        },
        {
            **expected,
            "transaction_id": credit,
            "type": live.bank.deposit_type,
            "counterparty_name": "Harbor Café",
            "amount": Decimal("1234567890123456.70"),
            "debit_credit_flag": False,
        },
    ]
    assert '"amount":1234567890123456.70' in answer.raw.decode()
    assert [row["settled_at"] for row in answer.data] == [
        postings[row["transaction_id"]]["settled_at"] for row in answer.data
    ]
    assert len({row["tx_uuid"] for row in answer.data}) == 2
    assert answer.body["pagination"] == {"limit": 50, "total": 2, "page": 1}


async def test_an_account_without_transactions_has_an_empty_list(quiet: Account) -> None:
    answer = await quiet.read("transactions")

    assert (answer.data, answer.body["pagination"]["total"]) == ([], 0)


@pytest.mark.parametrize(
    "day",
    [
        date(2025, 3, 9),  # 23 hours
        date(2025, 11, 2),  # 25 hours
        date(2025, 7, 4),
        date(2025, 1, 15),
        date(2024, 2, 29),
    ],
    ids=str,
)
async def test_a_day_begins_and_ends_at_midnight_in_new_york(live: Live, day: date) -> None:
    account = await new_account(live)
    following = day + timedelta(days=1)
    begins, ends = (datetime(d.year, d.month, d.day, tzinfo=NEW_YORK) for d in (day, following))
    before = await account.post(at=begins.astimezone(ZoneInfo("UTC")) - TICK)
    first = await account.post(at=begins)
    last = await account.post(at=ends.astimezone(ZoneInfo("UTC")) - TICK)
    after = await account.post(at=ends)

    assert await account.ids() == [after, last, first, before]
    assert await account.ids(start=day, end=day) == [last, first]
    assert await account.ids(start=day) == [after, last, first]
    assert await account.ids(end=day) == [last, first, before]
    assert await account.ids(start=following) == [after]
    assert await account.ids(end=day - timedelta(days=1)) == [before]
    assert await account.ids(start=following, end=following + timedelta(days=400)) == [after]
    counted = await account.read("transactions", start=day, end=day, limit=1)
    assert counted.body["pagination"] == {"limit": 1, "total": 2, "page": 1}


async def test_the_hour_that_comes_twice_is_in_the_order_of_time(live: Live) -> None:
    account = await new_account(live)
    half_past_one = datetime(2025, 11, 2, 1, 30, tzinfo=NEW_YORK)
    second = await account.post(at=half_past_one.replace(fold=1))
    first = await account.post(at=half_past_one)

    found = await account.ids(start="2025-11-02", end="2025-11-02")

    assert found == [second, first]


async def test_any_day_of_the_calendar_may_bound_a_period(live: Live) -> None:
    account = await new_account(live)
    transaction_id = await account.post()

    assert await account.ids(start="0001-01-01", end="9999-12-31") == [transaction_id]
    assert await account.ids(start="1970-01-01") == [transaction_id]
    assert await account.ids(end="1999-12-31") == []
    assert await account.ids(start="9999-12-31") == []


async def test_a_transaction_is_found_by_its_id_in_its_account_only(live: Live) -> None:
    account, other = await new_account(live), await new_account(live)
    at = datetime(2025, 5, 5, 12, tzinfo=NEW_YORK)
    mine, _ = await account.post(at=at), await account.post()
    others = await other.post()

    assert await account.ids(transaction_id=mine) == [mine]
    assert await account.ids(transaction_id=mine.upper()) == [mine]
    assert await account.ids(transaction_id=mine, start="2025-05-05", end="2025-05-05") == [mine]
    assert await account.ids(transaction_id=mine, start="2025-05-06") == []
    assert await account.ids(transaction_id=mine, page=2) == []
    assert await account.ids(transaction_id=others) == []
    assert await account.ids(transaction_id="no-such'%_") == []
    found = await account.read("transactions", transaction_id=mine)
    assert found.body["pagination"] == {"limit": 50, "total": 1, "page": 1}


async def test_pages_go_from_the_newest_to_the_end_and_are_empty_beyond(live: Live) -> None:
    account = await new_account(live)
    posted = [await account.post() for _ in range(5)]

    pages = [await account.read("transactions", page=page, limit=2) for page in (1, 2, 3, 4)]
    whole = await account.ids(limit=100)
    far = await account.read("transactions", page=1_000_000_000, limit=100)

    assert whole == posted[::-1]
    assert [[r["transaction_id"] for r in page.data] for page in pages] == [
        whole[:2],
        whole[2:4],
        whole[4:],
        [],
    ]
    assert [page.body["pagination"] for page in pages] == [
        {"limit": 2, "total": 5, "page": page} for page in (1, 2, 3, 4)
    ]
    assert far.data == []


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"page": 0}, [("page", "greater_than_equal")]),
        ({"page": 1_000_000_001}, [("page", "less_than_equal")]),
        ({"page": "one"}, [("page", "int_parsing")]),
        ({"limit": 0}, [("limit", "greater_than_equal")]),
        ({"limit": 101}, [("limit", "less_than_equal")]),
        ({"offset": 5}, [("offset", "extra_forbidden")]),
        ({"start": "2025-02-30"}, [("start_date", "date_parsing")]),
        ({"end": "2025-03-09T00:00:00Z"}, [("end_date", "date_parsing")]),
        ({"start": "2025-03-09", "end": "2025-03-08"}, [("end_date", "value_error")]),
        ({"transaction_id": ""}, [("transaction_id", "string_pattern_mismatch")]),
        (
            {"limit": 0, "sort": "asc", "start": "2025-03-09", "end": "2025-03-08"},
            [
                ("end_date", "value_error"),
                ("limit", "greater_than_equal"),
                ("sort", "extra_forbidden"),
            ],
        ),
    ],
)
async def test_what_is_not_allowed_is_told_all_at_once(
    quiet: Account, query: dict[str, Any], wrong: list[tuple[str, str]]
) -> None:
    answer = await quiet.read("transactions", **query)

    assert answer.status == 422
    found = [(tuple(error["loc"]), error["type"]) for error in answer.body["detail"]]
    assert sorted(found) == [(("query", name), kind) for name, kind in wrong]


async def test_a_parameter_sent_twice_is_refused(quiet: Account) -> None:
    customer = await quiet.owner("transactions")

    answer = await customer.get(f"/customer/accounts/transactions/{quiet.account_id}?page=1&page=2")

    assert [(error["loc"], error["type"]) for error in answer.body["detail"]] == [
        (["query", "page"], "value_error")
    ]


AMOUNTS = st.integers(1, 10**7).map(lambda cents: f"{Decimal(cents).scaleb(-2):.2f}")
MOMENTS = st.integers(0, 40).map(
    lambda step: datetime(2025, 3, 8, 22, tzinfo=ZoneInfo("UTC")) + step * timedelta(hours=1)
)
"""Few, so that several transactions have the same one; around a change of the clocks."""
POSTINGS = st.tuples(AMOUNTS, st.booleans(), MOMENTS | st.none())


@pytest.fixture
async def bank_with_small_pages(live: Live) -> AsyncIterator[None]:
    async with bank_with(live, page_limit=7):
        yield


@pytest.mark.usefixtures("bank_with_small_pages")
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    history=st.lists(POSTINGS, min_size=0, max_size=30),
    held=st.lists(AMOUNTS, max_size=2),
    limit=st.sampled_from([1, 3, 6, 7, 8, 13, 14, 50, 100]),
)
async def test_the_pages_are_the_history_and_the_balance_is_its_sum(
    live: Live, history: list[tuple[str, bool, datetime | None]], held: list[str], limit: int
) -> None:
    account = await new_account(live)
    # More than all that may leave.
    await account.post("10000000.00", at=datetime(2025, 1, 1, tzinfo=NEW_YORK))
    for amount, leaves, at in history:
        await account.post(amount, "debit" if leaves else "credit", at)
    for amount in held:
        await account.ach(amount, "submit")

    pages: list[list[dict[str, Any]]] = []
    while not pages or pages[-1]:
        answer = await account.read("transactions", page=len(pages) + 1, limit=limit)
        pages.append(answer.data)

    ledger = await live.bank.ledger(account.account_id)
    newest_first = sorted(ledger, key=lambda r: (r["settled_at"], r["transaction_id"]))[::-1]
    rows = [row for page in pages for row in page]
    assert [row["transaction_id"] for row in rows] == [r["transaction_id"] for r in newest_first]
    assert all(len(page) == limit for page in pages[:-2])
    total = sum(Decimal(row["amount"]) for row in ledger)
    signed = [
        -Decimal(r["amount"]) if r["debit_credit_flag"] else Decimal(r["amount"]) for r in rows
    ]
    balance = await account.balance()
    assert sum(signed) == total == balance["total"]
    assert balance["available"] + balance["held"] == balance["total"]


async def test_pages_of_the_provider_that_are_smaller_than_ours_are_put_together(
    live: Live,
) -> None:
    account = await new_account(live)
    await live.bank.simulate("history", account_id=account.account_id, transactions=60, days=9)
    whole = await account.ids(limit=100)
    async with bank_with(live, page_limit=7):
        answers = [await account.read("transactions", page=page, limit=25) for page in (1, 2, 3, 4)]

    assert len(set(whole)) == 60
    assert [[r["transaction_id"] for r in answer.data] for answer in answers] == [
        whole[:25],
        whole[25:50],
        whole[50:],
        [],
    ]
    assert answers[1].body["pagination"] == {"limit": 25, "total": 60, "page": 2}
