"""Core banking's lists: customers, external accounts, accounts and wires, those that are closed included."""

from __future__ import annotations

from services.provider_sandbox.database import Row
from services.provider_sandbox.encoding import money, stored
from services.provider_sandbox.listing import Listing, plain

OF_CUSTOMERS = "core_id IN (SELECT core_id FROM core_customer WHERE customer_id = ANY($3))"


def _customer(row: Row) -> dict[str, object]:
    return {**plain(row), "fields": stored(row["fields"])}


def _wire(row: Row) -> dict[str, object]:
    return {**plain(row), "amount": money(row["amount"])}


CUSTOMERS = Listing(
    "customers",
    "SELECT sequence, core_id, customer_id, kind, business_customer_id, status, fields"
    " FROM core_customer",
    _customer,
    by_id="core_id = ANY($3)",
    by_customer="customer_id = ANY($3)",
    has_newest=True,
)
EXTERNAL_ACCOUNTS = Listing(
    "external_accounts",
    "SELECT sequence, external_account_id, core_id,"
    " (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = link.core_id)"
    " AS customer_id, routing_number, account_number, status, is_primary AS primary"
    " FROM external_account AS link",
    plain,
    by_id="external_account_id = ANY($3)",
    by_customer=OF_CUSTOMERS,
)
ACCOUNTS = Listing(
    "accounts",
    "SELECT sequence, account_id, account_number, core_id,"
    " (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = account.core_id)"
    " AS customer_id, account_group, status FROM account",
    plain,
    by_id="account_id = ANY($3)",
    by_customer=OF_CUSTOMERS,
)
WIRES = Listing(
    "wires",
    "SELECT sequence, transaction_id, state, amount, account_id, external_account_id, reason"
    " FROM wire",
    _wire,
    by_id="transaction_id = ANY($3)",
    has_newest=True,
)
