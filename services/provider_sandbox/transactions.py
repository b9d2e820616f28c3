"""What happens on an account: booked in the ledger, reported in the feed, shown as a list of transactions."""

from __future__ import annotations

from decimal import Decimal

from services.provider_sandbox import ledger
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.feed import publish
from services.provider_sandbox.operations import Refusal

COLUMNS = "entry.type, entry.counterparty_name, entry.counterparty_id"
"""What a transaction's shape needs besides the posting's own columns."""


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


async def find(connection: Connection, account_id: str, transaction_id: str) -> Row | None:
    return await connection.fetchrow(
        f"SELECT posting.*, {COLUMNS} FROM posting JOIN journal_entry AS entry USING (transaction_id)"  # noqa: S608 - a constant
        " WHERE transaction_id = $2 AND ledger_account_id = $1",
        account_id,
        transaction_id,
    )


async def book(connection: Connection, account: Row, entry: ledger.Entry) -> dict[str, object]:
    """Post an entry on a locked account and report it: the transaction. Refuses what it has no funds for.

    Publishes, so it comes last in its database transaction.
    """
    amount = entry.postings[account["account_id"]]
    require_funds(account, -amount)
    await ledger.post(connection, entry)
    line = await find(connection, account["account_id"], entry.transaction_id)
    assert line is not None
    transaction = shape(account, line)
    content = {
        "account_id": account["account_id"],
        "customer_id": account["customer_id"],
        "data": transaction,
    }
    await publish(connection, "financial", "transaction.created", content)
    return transaction


def require_funds(account: Row, amount: Decimal) -> None:
    """Refuse to take more out of a locked account than is available in it now."""
    if amount > max(account["total"] - account["held"], Decimal(0)):
        raise Refusal(409, "insufficient_funds", "The account has not enough available funds.")
