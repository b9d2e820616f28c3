"""What a page of a list costs does not grow with the pages before it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import asyncpg

from services.provider_sandbox.core import lists as core
from services.provider_sandbox.database import Row
from services.provider_sandbox.financial import lists as financial
from services.provider_sandbox.listing import Listing, ListQuery
from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.wires import open_sender

MANY = 5_000
"""Rows of a list, of which a page is a small part."""


class CountingReads:
    """A connection that notes how many of the database's pages each statement touches."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.pages = 0

    async def fetch(self, query: str, *args: object) -> Sequence[Row]:
        [row] = await self._connection.fetchrow(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, *args
        )
        plan = json.loads(row)[0]["Plan"]
        self.pages = int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
        rows: Sequence[Row] = await self._connection.fetch(query, *args)
        return rows


async def test_the_last_page_costs_as_much_as_the_first(
    bank: Bank, books: asyncpg.Connection
) -> None:
    sender = await open_sender(bank, "10000.00")
    body = {"account_id": sender.account_id, "transactions": MANY, "days": 30}
    assert (await bank.simulate("history", body)).status == 200
    await books.execute(
        "INSERT INTO wire (transaction_id, account_id, external_account_id, counterparty_name,"
        " amount, purpose, state, reason, due_at)"
        " SELECT gen_random_uuid(), $1, $2, 'x', 1, 'x', 'rejected', 'x', now()"
        " FROM generate_series(1, $3)",
        sender.account_id,
        sender.external_account_id,
        MANY,
    )
    await books.execute("SET enable_seqscan = off")
    counting = CountingReads(books)
    lists: list[tuple[Listing, str]] = [(core.WIRES, "wire"), (financial.POSTINGS, "posting")]

    for listing, table in lists:
        last = await books.fetchval(f"SELECT max(sequence) - 300 FROM {table}")
        await listing.read(counting, ListQuery())  # type: ignore[arg-type]
        first_page = counting.pages
        read = await listing.read(counting, ListQuery(after=last))  # type: ignore[arg-type]

        assert read["next"] is not None
        assert counting.pages <= 2 * first_page + 20, table
