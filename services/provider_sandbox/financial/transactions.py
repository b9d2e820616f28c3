"""An account's transactions, newest first. Every page costs about the same, however long the history is."""

from __future__ import annotations

from services.provider_sandbox import accounts, transactions
from services.provider_sandbox.calendar import AnyDay
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.operations import Read, Refusal
from services.provider_sandbox.pages import NumberedPage

_PAGE = """
    SELECT page.*, entry.type, entry.counterparty_name, entry.counterparty_id
    FROM transaction_page($1, $2, $3, $4, $5) AS page
    LEFT JOIN journal_entry AS entry USING (transaction_id)
    ORDER BY page.settled_at DESC, page.transaction_id DESC
"""
_ONE = """
    SELECT posting.*, entry.type, entry.counterparty_name, entry.counterparty_id
    FROM posting JOIN journal_entry AS entry USING (transaction_id)
    WHERE transaction_id = $2 AND ledger_account_id = $1
        AND bank_day(posting.settled_at) BETWEEN coalesce($3::date, '-infinity') AND coalesce($4::date, 'infinity')
"""


class ListTransactions(NumberedPage):
    transaction_id: str | None = None
    start: AnyDay | None = None
    end: AnyDay | None = None


def list_transactions(page_limit: int) -> Read[ListTransactions]:
    """Make the handler that lists an account's transactions by numbered pages.

    Args:
        page_limit: rows in one page at most, also when more are asked for.
    """

    async def handle(connection: Connection, account_id: str, query: ListTransactions) -> object:
        if query.start is not None and query.end is not None and query.end < query.start:
            raise Refusal(400, "invalid", "end: before start.")
        account = await accounts.find(connection, account_id)
        limit = min(query.limit, page_limit)
        if query.transaction_id is None:
            total, lines = await _page(connection, account_id, query, limit)
        else:
            total, lines = await _single(connection, account_id, query, limit)
        return {
            "transactions": [transactions.shape(account, line) for line in lines],
            "total": total,
            "page": query.page,
            "limit": limit,
        }

    return Read("list_transactions", "/accounts/{id}/transactions", handle, ListTransactions)


async def _page(
    connection: Connection, account_id: str, query: ListTransactions, limit: int
) -> tuple[int, list[Row]]:
    rows = await connection.fetch(
        _PAGE,
        account_id,
        query.start,
        query.end,
        query.skipped(limit),
        limit,
    )
    return rows[0]["total"], [row for row in rows if row["transaction_id"] is not None]


async def _single(
    connection: Connection, account_id: str, query: ListTransactions, limit: int
) -> tuple[int, list[Row]]:
    rows = await connection.fetch(
        _ONE,
        account_id,
        query.transaction_id,
        query.start,
        query.end,
    )
    skipped = query.skipped(limit)
    return len(rows), list(rows[skipped : skipped + limit])
