"""The double-entry ledger: an entry has two postings or more, and they add up to nothing.

Amounts are signed as a customer sees them: positive raises an account. What leaves or enters the bank is posted against
an account of the bank's own. An account's total is moved by the postings alone (a trigger), an entry's postings are
written by one statement and must balance at its end (a trigger), and nothing posted is ever changed (a trigger again).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

import uuid_utils

from services.provider_sandbox.database import Connection, Row

CASH = "bank:cash"
"""The bank's own account that stands for the world outside."""
FEES = "bank:fees"
"""What the bank has earned from fees."""
INTEREST = "bank:interest"
"""What the bank has paid as interest."""

EntryType = Literal["deposit", "withdrawal", "wire", "ach", "fee", "interest", "return"]

_POST = """
    WITH entry AS (
        INSERT INTO journal_entry (transaction_id, type, counterparty_name, settled_at)
        SELECT transaction_id, type, counterparty_name, coalesce(settled_at, clock_timestamp())
        FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])
            AS entry (transaction_id, type, counterparty_name, settled_at)
        RETURNING *
    ), side AS (
        INSERT INTO posting (transaction_id, settled_at, ledger_account_id, amount)
        SELECT transaction_id, entry.settled_at, part.account_id, part.amount
        FROM unnest($5::text[], $6::text[], $7::numeric[]) AS part (transaction_id, account_id, amount)
        JOIN entry USING (transaction_id)
        RETURNING posting_id, transaction_id, ledger_account_id, amount
    )
    SELECT * FROM side JOIN entry USING (transaction_id)
"""


def other_side(entry_type: EntryType) -> str:
    """The bank's own account that an entry with a customer is posted against."""
    match entry_type:
        case "fee":
            return FEES
        case "interest":
            return INTEREST
        case _:
            return CASH


def new_transaction_id() -> str:
    return str(uuid_utils.uuid7())


@dataclass(frozen=True)
class Entry:
    """One transaction: `postings` maps a ledger account to its signed amount."""

    type: EntryType
    counterparty_name: str
    postings: Mapping[str, Decimal]
    settled_at: datetime | None = None
    """None: now."""
    transaction_id: str = field(default_factory=new_transaction_id)


def with_customer(
    account_id: str,
    amount: Decimal,
    entry_type: EntryType,
    counterparty_name: str,
    settled_at: datetime | None = None,
    transaction_id: str | None = None,
) -> Entry:
    """An entry between a customer's account and the bank's own; a positive amount raises the customer's."""
    return Entry(
        transaction_id=transaction_id or new_transaction_id(),
        type=entry_type,
        counterparty_name=counterparty_name,
        postings={other_side(entry_type): -amount, account_id: amount},
        settled_at=settled_at,
    )


async def post(connection: Connection, entries: Sequence[Entry]) -> Sequence[Row]:
    """Write the entries; all postings, each with its entry's columns.

    The caller holds the locks of the customers' accounts in them, taken in order of their ids.
    """
    parts = [(entry, *part) for entry in entries for part in entry.postings.items()]
    return await connection.fetch(
        _POST,
        [entry.transaction_id for entry in entries],
        [entry.type for entry in entries],
        [entry.counterparty_name for entry in entries],
        [entry.settled_at for entry in entries],
        [entry.transaction_id for entry, _, _ in parts],
        [account_id for _, account_id, _ in parts],
        [amount for _, _, amount in parts],
    )
