from __future__ import annotations

import asyncio
import uuid
from decimal import Decimal

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.provider_sandbox.bank import Bank

AMOUNTS = st.decimals(min_value="0.01", max_value="1234567890123456.78", places=2)


async def post(books: asyncpg.Connection, sides: dict[str, str]) -> None:
    transaction_id = str(uuid.uuid4())
    async with books.transaction():
        await books.execute(
            "INSERT INTO journal_entry VALUES ($1, 'fee', 'x', now())", transaction_id
        )
        for account_id, amount in sides.items():
            await books.execute(
                "INSERT INTO posting (transaction_id, settled_at, ledger_account_id, amount)"
                " VALUES ($1, now(), $2, $3)",
                transaction_id,
                account_id,
                Decimal(amount),
            )


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(amounts=st.lists(AMOUNTS, min_size=1, max_size=12))
async def test_a_balance_is_the_sum_of_postings_and_the_bank_owes_what_it_got(
    bank: Bank, amounts: list[Decimal]
) -> None:
    opened = await bank.open_account()

    replies = await asyncio.gather(*(bank.deposit(opened.account_id, str(a)) for a in amounts))

    assert {reply.status for reply in replies} == {200}
    balance = (await bank.get(f"/financial/accounts/{opened.account_id}/balance")).body
    assert Decimal(balance["total"]) == sum(amounts)
    assert (balance["available"], balance["held"]) == (balance["total"], "0.00")
    postings = await bank.truth("ledger", account_id=opened.account_id)
    assert sorted(Decimal(p["amount"]) for p in postings) == sorted(amounts)
    assert [p["settled_at"] for p in postings] == sorted(p["settled_at"] for p in postings)
    mirrored = {
        p["transaction_id"]: Decimal(p["amount"])
        for p in await bank.truth("ledger", account_id="bank:cash")
    }
    for posting in postings:
        assert mirrored[posting["transaction_id"]] == -Decimal(posting["amount"])


@pytest.mark.parametrize(
    ("sent", "booked"),
    [
        ("12.30", "12.30"),
        (12.3, "12.30"),
        (7, "7.00"),
        ("1e3", "1000.00"),
        ("1234567890123456.78", "1234567890123456.78"),
    ],
)
async def test_a_deposit_is_a_number_or_a_decimal_string(
    bank: Bank, sent: object, booked: str
) -> None:
    opened = await bank.open_account()

    reply = await bank.deposit(opened.account_id, sent)

    [posting] = await bank.truth("ledger", account_id=opened.account_id)
    assert posting["amount"] == booked
    assert posting["type"] == "deposit"
    assert posting["counterparty_name"] == "Jane Roe"
    assert reply.body == {
        "transaction_id": posting["transaction_id"],
        "account_id": opened.account_id,
        "amount": booked,
        "available": booked,
        "held": "0.00",
        "total": booked,
    }


@pytest.mark.parametrize(
    "amount", [0, -1, "1.001", True, None, "NaN", "Infinity", "", "1e30", "\uff11", [1]], ids=repr
)
async def test_no_other_amount_is_booked(bank: Bank, amount: object) -> None:
    opened = await bank.open_account()

    reply = await bank.deposit(opened.account_id, amount)

    assert (reply.status, reply.code) == (422, "invalid")
    assert await bank.truth("ledger", account_id=opened.account_id) == []


async def test_a_deposit_finds_a_restricted_account_but_no_closed_or_unknown_one(
    bank: Bank,
) -> None:
    opened = await bank.open_account()
    await bank.simulate(f"accounts/{opened.account_id}/restrict")

    into_restricted = await bank.deposit(opened.account_id, "5.00")
    closed = await bank.simulate(f"accounts/{opened.account_id}/close")
    into_closed = await bank.deposit(opened.account_id, "5.00")
    into_none = await bank.deposit("acc_none", "5.00")

    assert into_restricted.status == 200
    assert closed.body["status"] == "closed", "closed by decree, though there is money in it"
    assert (into_closed.status, into_closed.code) == (409, "account_closed")
    assert (into_none.status, into_none.code) == (404, "not_found")
    balance = (await bank.get(f"/financial/accounts/{opened.account_id}/balance")).body
    assert balance["total"] == "5.00"


@pytest.mark.parametrize(
    "amounts", [["1.00"], ["1.00", "-0.99"], []], ids=["one_sided", "unequal", "empty"]
)
async def test_the_books_take_no_entry_that_does_not_balance(
    bank: Bank, books: asyncpg.Connection, amounts: list[str]
) -> None:
    opened = await bank.open_account()
    sides = [opened.account_id, "bank:cash"]

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="does not balance"):
        await post(books, dict(zip(sides, amounts, strict=False)))

    assert await bank.truth("ledger", account_id=opened.account_id) == []


async def test_what_is_posted_is_never_changed(bank: Bank, books: asyncpg.Connection) -> None:
    opened = await bank.open_account()
    transaction_id = (await bank.deposit(opened.account_id, "5.00")).body["transaction_id"]

    for statement in (
        "UPDATE posting SET amount = 9 WHERE transaction_id = $1",
        "DELETE FROM posting WHERE transaction_id = $1",
        "UPDATE journal_entry SET type = 'fee' WHERE transaction_id = $1",
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="never changed"):
            await books.execute(statement, transaction_id)
