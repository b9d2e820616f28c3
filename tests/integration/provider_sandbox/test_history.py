from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.books import events_of, listed, transacted

MANY, FEW = 5_000, 100


async def filled(bank: Bank, transactions: int, days: int) -> tuple[str, Any]:
    opened = await bank.open_account()
    body = {"account_id": opened.account_id, "transactions": transactions, "days": days}
    reply = await bank.simulate("history", body)
    assert reply.status == 200, reply
    return opened.account_id, reply.body


async def pages_read(books: asyncpg.Connection, account_id: str, skip: int) -> int:
    """How many of the database's pages a page of 50 takes: a measure that no busy machine disturbs."""
    await books.execute("SET enable_seqscan = off")
    [row] = await books.fetchrow(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
        " SELECT * FROM transaction_page($1, NULL, NULL, $2, 50)",
        account_id,
        skip,
    )
    plan = json.loads(row)[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


async def test_thousands_are_made_and_every_page_costs_the_same(
    bank: Bank, books: asyncpg.Connection
) -> None:
    few, _ = await filled(bank, FEW, 365)

    many, made = await filled(bank, MANY, 365)

    newest = (await listed(bank, many, "transactions", limit=1))["transactions"][0]
    oldest = await listed(bank, many, "transactions", limit=1, page=MANY)
    assert newest["settled_at"] == made["last_settled_at"]
    assert oldest["transactions"][0]["settled_at"] == made["first_settled_at"]
    assert oldest["total"] == MANY
    now = datetime.now(UTC)
    assert datetime.fromisoformat(newest["settled_at"]) < now
    assert datetime.fromisoformat(made["first_settled_at"]) > now - timedelta(days=365, hours=1)
    checked = await books.fetchrow(
        "SELECT count(*), sum(amount), min(running) FROM (SELECT amount,"
        " sum(amount) OVER (ORDER BY settled_at, transaction_id) AS running"
        " FROM posting WHERE ledger_account_id = $1) AS lines",
        many,
    )
    assert (checked["count"], f"{checked['sum']:.2f}") == (MANY, made["total"])
    assert checked["min"] >= 0
    assert [kind for kind, _ in await events_of(bank, many)] == ["account.opened"]
    await pages_read(books, few, 0)  # the first use of a function in a session reads the catalogue
    base = await pages_read(books, few, 0)
    for skip in (0, MANY // 2, MANY - 50):
        assert await pages_read(books, many, skip) <= 2 * base + 20


async def test_a_history_joins_what_the_account_has_and_may_be_made_again(
    bank: Bank, books: asyncpg.Connection
) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "3.00")

    for _ in range(2):
        body = {"account_id": opened.account_id, "transactions": 300, "days": 1}
        reply = await bank.simulate("history", body)

    seen: set[str] = set()
    for page in range(1, 5):
        part = await listed(bank, opened.account_id, "transactions", limit=200, page=page)
        assert part["total"] == 601
        seen |= {t["transaction_id"] for t in part["transactions"]}
    assert len(seen) == 601
    total = await books.fetchval(
        "SELECT sum(amount) FROM posting WHERE ledger_account_id = $1", opened.account_id
    )
    assert reply.body["total"] == f"{total:.2f}"


@pytest.mark.parametrize(
    "wrong", [{"transactions": 0}, {"transactions": 250_001}, {"days": 0}, {"days": 3_661}], ids=str
)
async def test_a_history_is_bounded(bank: Bank, wrong: dict[str, int]) -> None:
    opened = await bank.open_account()

    body = {"account_id": opened.account_id, "transactions": 1, "days": 1} | wrong
    reply = await bank.simulate("history", body)

    assert (reply.status, reply.code) == (422, "invalid")
