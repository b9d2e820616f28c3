"""Accepting wires: the funds are held, and the caller's key becomes the transaction id.

All wires that wait at the same moment are decided together, one after another, over accounts that are locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from services.provider_sandbox import accounts
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.feed import publish_all
from services.provider_sandbox.operations import Refusal, not_found
from services.provider_sandbox.transactions import insufficient_funds
from services.provider_sandbox.wires.records import feed_entry

_LOCK_ACCOUNTS = """
    SELECT account_id, core_id, status, is_restricted, total, held FROM account
    WHERE account_id = ANY($1) ORDER BY account_id FOR UPDATE
"""
_LINKS = """
    SELECT external_account_id, core_id, status, name_on_account, bank_name
    FROM external_account WHERE external_account_id = ANY($1)
"""
_USED = """
    SELECT transaction_id FROM wire WHERE transaction_id = ANY($1)
    UNION ALL SELECT transaction_id FROM journal_entry WHERE transaction_id = ANY($1)
"""
_ACCEPT = """
    INSERT INTO wire (transaction_id, account_id, external_account_id, counterparty_name,
        amount, purpose, due_at)
    SELECT accepted.*, clock_timestamp() + $7
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::text[]) AS accepted
"""


@dataclass(frozen=True)
class Order:
    """What a caller wants sent. `transaction_id` is the caller's, and nothing else of the bank's has ever had it."""

    transaction_id: str
    account_id: str
    external_account_id: str
    amount: Decimal
    purpose: str


@dataclass(frozen=True)
class Facts:
    """What the decisions are made from. The accounts are locked."""

    used: frozenset[str]
    """Transaction ids that are taken already."""
    accounts: Mapping[str, Row]
    links: Mapping[str, Row]
    """External accounts."""


async def send(
    connection: Connection, orders: Sequence[Order], takes: timedelta
) -> list[Refusal | None]:
    """Accept the orders or refuse them, in their order; None for one that is accepted."""
    facts = await _look_up(connection, orders)
    refusals = decide(orders, facts)
    accepted = [o for o, refusal in zip(orders, refusals, strict=True) if refusal is None]
    if accepted:
        await _record(connection, accepted, facts, takes)
        entries = [feed_entry("submitted", vars(order)) for order in accepted]
        await publish_all(connection, "core", entries)
    return refusals


def decide(orders: Sequence[Order], facts: Facts) -> list[Refusal | None]:
    """The bank's answer to each, knowing what it has held for those before."""
    available = {key: row["total"] - row["held"] for key, row in facts.accounts.items()}
    refusals: list[Refusal | None] = []
    for order in orders:
        try:
            _require_acceptable(order, facts)
            if order.amount > available[order.account_id]:
                raise insufficient_funds()
        except Refusal as refusal:
            refusals.append(refusal)
        else:
            available[order.account_id] -= order.amount
            refusals.append(None)
    return refusals


def _require_acceptable(order: Order, facts: Facts) -> None:
    if order.transaction_id in facts.used:
        # The key has been forgotten since: the refusal does not say whether the earlier wire was sent.
        raise Refusal(
            409, "duplicate_transaction", "The transaction id was used before.", kept=False
        )
    account = facts.accounts.get(order.account_id)
    if account is None:
        raise not_found("account")
    accounts.require_spendable(account)
    link = facts.links.get(order.external_account_id)
    if link is None or (link["core_id"], link["status"]) != (account["core_id"], "open"):
        raise Refusal(
            409, "external_account_not_linked", "The customer has not linked that account."
        )


async def _look_up(connection: Connection, orders: Sequence[Order]) -> Facts:
    locked = await connection.fetch(
        _LOCK_ACCOUNTS,
        list({order.account_id for order in orders}),
    )
    links = await connection.fetch(
        _LINKS,
        list({order.external_account_id for order in orders}),
    )
    used = await connection.fetch(
        _USED,
        [order.transaction_id for order in orders],
    )
    return Facts(
        used=frozenset(row["transaction_id"] for row in used),
        accounts={row["account_id"]: row for row in locked},
        links={row["external_account_id"]: row for row in links},
    )


async def _record(
    connection: Connection, accepted: Sequence[Order], facts: Facts, takes: timedelta
) -> None:
    await connection.execute(
        _ACCEPT,
        [order.transaction_id for order in accepted],
        [order.account_id for order in accepted],
        [order.external_account_id for order in accepted],
        [_counterparty(facts.links[order.external_account_id]) for order in accepted],
        [order.amount for order in accepted],
        [order.purpose for order in accepted],
        takes,
    )
    await accounts.hold(connection, [(order.account_id, order.amount) for order in accepted])


def _counterparty(link: Row) -> str:
    return f"{link['name_on_account']}, {link['bank_name']}"
