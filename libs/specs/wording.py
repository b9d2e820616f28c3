"""Descriptions of fields that mean the same wherever they stand."""

from __future__ import annotations

BY_NAME: dict[str, str] = {
    "account_id": "The account's id: the `id` of a list of accounts.",
    "bank_name": "The name of the bank.",
    "created_at": "When it was made.",
    "customer_id": "The business that it belongs to.",
    "delivery_id": "The delivery's id.",
    "event_id": "The event's id.",
    "external_account_id": "Its id: the `external_account_id` of wires.",
    "limit": "How many rows a page has at most.",
    "name_on_account": "The name of the account's holder.",
    "object": "The kind of the resource.",
    "page": "Which page; the first one is 1. A page beyond the end is empty.",
    "primary": "Whether it is the primary one, which `getExternalAccount` shows.",
    "routing_number": "The routing number of its bank.",
    "subscription_id": "The subscription's id.",
    "transaction_id": "The wire's id: the `transaction_id` that `sendWire` returned, and of the debit in the account's"
    " transactions.",
    "updated_at": "When it last changed.",
}
"""By name, for fields that have no docstring."""
