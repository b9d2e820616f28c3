"""The financial provider's lists: postings on customers' accounts, balances, loads of deposit locations."""

from __future__ import annotations

from services.provider_sandbox.accounts import balances
from services.provider_sandbox.database import Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.listing import Listing


def _posting(row: Row) -> dict[str, object]:
    return {
        "transaction_id": row["transaction_id"],
        "account_id": row["ledger_account_id"],
        "amount": money(row["amount"]),
        "type": row["type"],
        "settled_at": instant(row["settled_at"]),
    }


def _balance(row: Row) -> dict[str, object]:
    return {
        "account_id": row["account_id"],
        **balances(row),
        "as_of_position": row["last_posting"],
    }


def _load(row: Row) -> dict[str, object]:
    return {
        "account_id": row["account_id"],
        "load_date": row["load_date"].isoformat(),
        "swept_total": money(row["balance"]),
        "locations": row["locations"],
    }


# As a join, a plan that was made while there were few entries would go on reading all of them for each page.
POSTINGS = Listing(
    "postings",
    _posting,
    page="""
        SELECT sequence, transaction_id, ledger_account_id, amount, settled_at,
            (SELECT type FROM journal_entry AS entry WHERE entry.transaction_id = posting.transaction_id) AS type
        FROM posting
        WHERE ledger_account_id NOT LIKE 'bank:%' AND sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
BALANCES = Listing(
    "balances",
    _balance,
    page="""
        SELECT sequence, account_id, total, held, last_posting
        FROM account WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, account_id, total, held, last_posting
            FROM account
            WHERE account_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
LOADS = Listing(
    "loads",
    _load,
    page="""
        SELECT sequence, account_id, load_date, balance, locations
        FROM deposit_load WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
