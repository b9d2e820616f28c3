"""What happens on an account: booked in the ledger, reported in the feed, shown as a list of transactions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from services.provider_sandbox import ledger
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.feed import publish_all
from services.provider_sandbox.operations import Refusal


def shape(account: Row, line: Row) -> dict[str, object]:
    """One posting on the account with its entry, as the account's holder sees it."""
    amount: Decimal = line["amount"]
    return {
        "transaction_id": line["transaction_id"],
        "account_id": account["account_id"],
        "account_number": account["account_number"],
        "account_group": account["account_group"],
        "type": line["type"],
        "settled_at": instant(line["settled_at"]),
        "counterparty_name": line["counterparty_name"],
        "counterparty_id": line["counterparty_id"],
        "amount": money(abs(amount)),
        "direction": "debit" if amount < 0 else "credit",
        "posting_id": str(line["posting_id"]),
    }


async def book(connection: Connection, account: Row, entry: ledger.Entry) -> dict[str, object]:
    """Post an entry on a locked account and report it: the transaction. Refuses what it has no funds for.

    Publishes, so it comes last in its database transaction.
    """
    amount = entry.postings[account["account_id"]]
    require_funds(account, -amount)
    [transaction] = await book_all(connection, [(account, entry)])
    return transaction


async def book_all(
    connection: Connection, entries: Sequence[tuple[Row, ledger.Entry]]
) -> list[dict[str, object]]:
    """As `book`, several, each with its locked account, for which there are funds."""
    rows = await ledger.post(connection, [entry for _, entry in entries])
    lines = {(row["transaction_id"], row["ledger_account_id"]): row for row in rows}
    transactions = [
        shape(account, lines[entry.transaction_id, account["account_id"]])
        for account, entry in entries
    ]
    reports = [
        {
            "account_id": account["account_id"],
            "customer_id": account["customer_id"],
            "data": transaction,
        }
        for (account, _), transaction in zip(entries, transactions, strict=True)
    ]
    entries_of_feed = [("transaction.created", report) for report in reports]
    await publish_all(connection, "financial", entries_of_feed)
    return transactions


def require_funds(account: Row, amount: Decimal) -> None:
    """Refuse to take more out of a locked account than is available in it now."""
    if amount > max(account["total"] - account["held"], Decimal(0)):
        raise insufficient_funds()


def insufficient_funds() -> Refusal:
    return Refusal(409, "insufficient_funds", "The account has not enough available funds.")
