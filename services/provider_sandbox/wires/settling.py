"""What becomes of accepted wires: completed or rejected, and returned after completion.

The wires are locked, and accounts are locked after them. That an account was closed or restricted meanwhile stops
nothing: the bank has given its word, and holds the money.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from services.provider_sandbox import ledger, transactions
from services.provider_sandbox.accounts import hold
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.feed import publish_all
from services.provider_sandbox.wires.records import feed_entry, find, require

REJECTED = "The receiving bank rejected the wire."
RETURNED = "The receiving bank returned the wire."

REJECTED_CENTS = Decimal("0.66")
"""A wire with these cents is accepted, and rejected when it would be completed."""

_SET_RETURNED = """
    UPDATE wire SET state = 'returned', reason = $2, return_transaction_id = $3
    WHERE transaction_id = $1
"""
_LOCK_ACCOUNTS = "SELECT FROM account WHERE account_id = ANY($1) ORDER BY account_id FOR UPDATE"
_ACCOUNTS = """
    SELECT account_id, account_number, account_group, customer_id FROM account_of_customer
    WHERE account_id = ANY($1)
"""
_SET_REJECTED = "UPDATE wire SET state = 'rejected', reason = $2 WHERE transaction_id = ANY($1)"
_SET_COMPLETED = "UPDATE wire SET state = 'completed' WHERE transaction_id = ANY($1)"


async def settle(connection: Connection, wires: Sequence[Row]) -> None:
    """Complete locked wires, or reject those whose amount says so."""
    to_reject = [wire for wire in wires if wire["amount"] % 1 == REJECTED_CENTS]
    to_complete = [wire for wire in wires if wire["amount"] % 1 != REJECTED_CENTS]
    accounts = await _release(connection, wires)
    await _set_rejected(connection, to_reject, REJECTED)
    await _set_completed(connection, to_complete, accounts)


async def complete(connection: Connection, wire: Row) -> Row:
    """Debit what was held."""
    require(wire, "completed")
    accounts = await _release(connection, [wire])
    await _set_completed(connection, [wire], accounts)
    return await find(connection, wire["transaction_id"])


async def reject(connection: Connection, wire: Row, reason: str) -> Row:
    """Release what was held."""
    require(wire, "rejected")
    await _release(connection, [wire])
    await _set_rejected(connection, [wire], reason)
    return await find(connection, wire["transaction_id"])


async def send_back(connection: Connection, wire: Row, reason: str) -> Row:
    """The money comes back, as a transaction of its own."""
    require(wire, "returned")
    accounts = await _lock_accounts(connection, [wire])
    entry = ledger.with_customer(
        wire["account_id"], wire["amount"], "return", wire["counterparty_name"]
    )
    await publish_all(connection, "core", [feed_entry("returned", wire, reason)])
    await transactions.book_all(connection, [(accounts[wire["account_id"]], entry)])
    await connection.execute(
        _SET_RETURNED,
        wire["transaction_id"],
        reason,
        entry.transaction_id,
    )
    return await find(connection, wire["transaction_id"])


async def _lock_accounts(connection: Connection, wires: Sequence[Row]) -> Mapping[str, Row]:
    account_ids = list({wire["account_id"] for wire in wires})
    await connection.execute(_LOCK_ACCOUNTS, account_ids)
    rows = await connection.fetch(
        _ACCOUNTS,
        account_ids,
    )
    return {row["account_id"]: row for row in rows}


async def _release(connection: Connection, wires: Sequence[Row]) -> Mapping[str, Row]:
    """End the holds; the accounts, locked."""
    accounts = await _lock_accounts(connection, wires)
    await hold(connection, [(wire["account_id"], -wire["amount"]) for wire in wires])
    return accounts


async def _set_rejected(connection: Connection, wires: Sequence[Row], reason: str) -> None:
    if not wires:
        return
    await connection.execute(
        _SET_REJECTED,
        [wire["transaction_id"] for wire in wires],
        reason,
    )
    await publish_all(connection, "core", [feed_entry("rejected", wire, reason) for wire in wires])


async def _set_completed(
    connection: Connection, wires: Sequence[Row], accounts: Mapping[str, Row]
) -> None:
    if not wires:
        return
    await connection.execute(
        _SET_COMPLETED,
        [wire["transaction_id"] for wire in wires],
    )
    await publish_all(connection, "core", [feed_entry("completed", wire) for wire in wires])
    entries = [
        ledger.with_customer(
            wire["account_id"],
            -wire["amount"],
            "wire",
            wire["counterparty_name"],
            transaction_id=wire["transaction_id"],
        )
        for wire in wires
    ]
    booked = [(accounts[w["account_id"]], e) for w, e in zip(wires, entries, strict=True)]
    await transactions.book_all(connection, booked)
