"""An account's postings in the order in which they were posted, the newest first. Times of
settlement do not matter: an entry may be back-dated.
"""

from __future__ import annotations

from services.provider_sandbox import accounts, transactions
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Read, Refusal
from services.provider_sandbox.pages import LARGEST_POSITION, CursorPage, read_cursor

CURSOR = r"([0-9]{1,19})"
"""The sequence of the last posting of the page before."""

# The entry's fields are found one by one: a join could become a plan that reads all entries for each page.
_PAGE = """
    SELECT page.*, entry.type, entry.counterparty_name, entry.counterparty_id
    FROM (
        SELECT sequence, posting_id, transaction_id, settled_at, amount FROM posting
        WHERE ledger_account_id = $1 AND ledger_account_id NOT LIKE 'bank:%' AND sequence < $2
        ORDER BY sequence DESC LIMIT $3
    ) AS page, LATERAL (
        SELECT type, counterparty_name, counterparty_id FROM journal_entry
        WHERE journal_entry.transaction_id = page.transaction_id LIMIT 1
    ) AS entry
    ORDER BY page.sequence DESC
"""


def list_account_postings(page_limit: int) -> Read[CursorPage]:
    """Make the handler that lists an account's postings by cursor, the newest first.

    Args:
        page_limit: rows in one page at most, also when more are asked for.
    """

    async def handle(connection: Connection, account_id: str, query: CursorPage) -> object:
        account = await accounts.find(connection, account_id)
        limit = min(query.limit, page_limit)
        [before] = read_cursor(query.cursor, CURSOR) or [LARGEST_POSITION]
        if int(before) > LARGEST_POSITION:
            raise Refusal(400, "invalid", "cursor: not one that was given out.")
        rows = await connection.fetch(_PAGE, account_id, int(before), limit + 1)
        page = rows[:limit]
        return {
            "postings": [transactions.shape(account, row) for row in page],
            "next_cursor": str(page[-1]["sequence"]) if len(rows) > limit else None,
        }

    return Read("list_account_postings", "/accounts/{id}/postings", handle, CursorPage)
