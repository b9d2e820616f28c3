"""Transactions, pending transactions and the balances that follow from them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from increase.types import BalanceLookup, Transaction

from tests.support.increase_bank.errors import InvalidOperation, ObjectNotFound
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.shapes import Json, rendered, timestamp
from tests.support.increase_bank.store import Store

POST = """
INSERT INTO posting (id, account_id, amount, created, category, description, route_id, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
MOVE = """
INSERT INTO balance VALUES (?, ?, ?)
ON CONFLICT (account_id) DO UPDATE SET current = current + excluded.current, held = held + excluded.held
"""
ACH = "inbound_ach_transfer"
STANDS_FOR_AMOUNT = 987_654_321_123
HISTORICAL = "history"
"""Stands for HISTORY in rows that are loaded by the million."""
HISTORY: Json = {
    "originator_company_entry_description": "PAYMENT",
    "originator_company_id": "0987654321",
    "originator_company_name": "HISTORY COMPANY",
    "trace_number": "021000038461022",
    "transfer_id": "inbound_ach_transfer_history0000000000000",
}
LOAD = """
WITH RECURSIVE entry (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM entry WHERE number + 1 < ?)
INSERT INTO posting (id, account_id, amount, created, category, description, route_id, details)
SELECT ? || printf('%012d', number), ?, iif(number % 10 = 9, -100, 300), ? + CAST(round(number * ?) AS INTEGER),
    'inbound_ach_transfer', 'Entry ' || (number + 1), ?, ?
FROM entry
"""
SELECT = (
    "SELECT id, account_id, amount, created, category, description, route_id, details FROM posting"
)


def post(
    store: Store,
    account_id: str,
    amount: int,
    category: str,
    details: Json,
    *,
    description: str,
    route_id: str | None = None,
    at: int | None = None,
) -> str:
    """Book a signed amount in cents, now or at an earlier moment; the transaction's id.

    Args:
        details: of the source, under its category.
    """
    posting_id, created = new_id("transaction"), at or store.now()
    row = (posting_id, account_id, amount, created, category, description, route_id)
    transaction((*row, json.dumps(details)))  # fails before anything is written
    store.execute(POST, (*row, json.dumps(details)))
    store.execute(MOVE, (account_id, amount, 0))
    store.event("transaction.created", posting_id)
    return posting_id


def transaction(row: tuple[Any, ...]) -> str:
    """The answer for a row of `posting`."""
    if row[-1] == HISTORICAL:
        return _historical(row)
    details: Json = json.loads(row[-1])
    return _rendered(row, details)


def _rendered(row: tuple[Any, ...], details: Json) -> str:
    posting_id, account_id, amount, created, category, description, route_id, _ = row
    body: Json = {
        "id": posting_id,
        "type": "transaction",
        "account_id": account_id,
        "amount": amount,
        "created_at": timestamp(created),
        "currency": "USD",
        "description": description,
        "route_id": route_id,
        "route_type": None if route_id is None else "account_number",
        "source": {"category": category, category: details},
    }
    return rendered(Transaction, body)


def _historical(row: tuple[Any, ...]) -> str:
    """Of a row that was loaded: filled into text that was validated once, since tests read a million of them."""
    posting_id, account_id, amount, created, _, description, _, _ = row
    text = _historical_text(account_id, row[6]).replace('"@id"', f'"{posting_id}"', 1)
    text = text.replace('"@description"', f'"{description}"', 1)
    text = text.replace(f'"{timestamp(0)}"', f'"{timestamp(created)}"', 1)
    return text.replace(f":{STANDS_FOR_AMOUNT}", f":{amount}")


@lru_cache(maxsize=16)
def _historical_text(account_id: str, route_id: str) -> str:
    row = ("@id", account_id, STANDS_FOR_AMOUNT, 0, ACH, "@description", route_id, "")
    return _rendered(row, HISTORY | {"amount": STANDS_FOR_AMOUNT})


def find(store: Store, posting_id: str) -> str:
    """Raises ObjectNotFound."""
    row = store.row(f"{SELECT} WHERE id = ?", (posting_id,))
    if row is None:
        raise ObjectNotFound(f"There is no transaction {posting_id}.")
    return transaction(row)


def hold(
    store: Store, account_id: str, amount: int, category: str, details: Json, description: str
) -> str:
    """Hold `amount` cents; the pending transaction's id. Raises InvalidOperation: too little is available."""
    if available(store, account_id) < amount:
        raise InvalidOperation(f"Account {account_id} has insufficient funds.")
    held = store.put(
        {
            "id": new_id("pending_transaction"),
            "type": "pending_transaction",
            "account_id": account_id,
            "amount": -amount,
            "held_amount": -amount,
            "completed_at": None,
            "currency": "USD",
            "description": description,
            "source": {"category": category, category: details},
            "status": "pending",
        }
    )
    store.execute(MOVE, (account_id, 0, amount))
    return str(held["id"])


def release(store: Store, pending_id: str | None) -> None:
    """End a hold, once."""
    if pending_id is None:
        return
    held = store.get("pending_transaction", pending_id)
    if held["status"] == "complete":
        return
    held |= {"status": "complete", "completed_at": timestamp(store.now())}
    store.save(held)
    store.execute(MOVE, (held["account_id"], 0, held["held_amount"]))


def balances(store: Store, account_id: str) -> tuple[int, int]:
    """What is booked and what of it is held, in cents."""
    row = store.row("SELECT current, held FROM balance WHERE account_id = ?", (account_id,))
    return (0, 0) if row is None else (row[0], row[1])


def available(store: Store, account_id: str) -> int:
    current, held = balances(store, account_id)
    return current - held


def balance_lookup(store: Store, account_id: str, until: int | None = None) -> str:
    """The answer of an account's balance, now or at an earlier moment, at which nothing counts as held."""
    current, held = balances(store, account_id)
    if until is not None:
        row = store.row(
            "SELECT coalesce(sum(amount), 0) FROM posting WHERE account_id = ? AND created <= ?",
            (account_id, until),
        )
        current, held = (0 if row is None else row[0]), 0
    body: Json = {
        "type": "balance_lookup",
        "account_id": account_id,
        "current_balance": current,
        "available_balance": current - held,
        "loan": None,
    }
    return rendered(BalanceLookup, body)


def load_history(
    store: Store, account_id: str, route_id: str, count: int, first: int, last: int
) -> None:
    """Book `count` ACH credits and debits at even distances between two moments, without events.

    A million take some seconds. Their descriptions are `Entry 1`, …; every tenth is a debit of a third of the others.
    """
    step = (last - first) / max(count - 1, 1)
    prefix = new_id("transaction", 8)
    store.execute(LOAD, (count, prefix, account_id, first, step, route_id, HISTORICAL))
    debits = count // 10
    store.execute(MOVE, (account_id, 300 * (count - debits) - 100 * debits, 0))
