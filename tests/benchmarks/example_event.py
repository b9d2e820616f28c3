"""The event that is delivered and listed by the thousand: a transaction, as ledger_read tells of it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from uuid_utils import uuid7

from libs.contracts.events import EVENT_TYPES, Event, new_event
from libs.contracts.transactions import TransactionEventData

TYPE = "transaction.created"


def _example() -> Event:
    at = datetime(2026, 1, 30, 12, 30, 15, 250000, UTC)
    transaction_id = str(uuid7())
    data = TransactionEventData(
        transaction_id=transaction_id,
        account_number="4417",
        account_group="business_checking",
        type="deposit",
        settled_at=at,
        counterparty_name="Harbor & Quay Provisions LLC",
        counterparty_id=str(uuid7()),
        amount=Decimal("1250.75"),
        debit_credit_flag=False,
        tx_uuid=str(uuid7()),
        account_id=str(uuid7()),
        customer_id=str(uuid7()),
    )
    return new_event(
        EVENT_TYPES[TYPE],
        data,
        tenant="example",
        customer_id=data.customer_id,
        resource_id=transaction_id,
        sequence=1,
        at=at,
    )


_EXAMPLE = _example()
BODY = _EXAMPLE.body
HEAD, TAIL = BODY.split(_EXAMPLE.event_id.encode())
"""The body up to its id, and from there on."""


def new_events(tenant: str, customer_id: str, count: int) -> list[Event]:
    """So many of one customer's; they differ in their ids."""
    return [_with_id(f"evt_{uuid7()}", tenant, customer_id) for _ in range(count)]


def _with_id(event_id: str, tenant: str, customer_id: str) -> Event:
    body = HEAD + event_id.encode() + TAIL
    return Event(event_id, TYPE, tenant, customer_id, _EXAMPLE.resource_id, 1, body)
