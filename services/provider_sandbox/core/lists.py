"""Core banking's lists: customers, external accounts, accounts and wires, those that are closed included."""

from __future__ import annotations

from services.provider_sandbox.database import Row
from services.provider_sandbox.encoding import money, stored
from services.provider_sandbox.listing import Listing, plain


def _customer(row: Row) -> dict[str, object]:
    return {**plain(row), "fields": stored(row["fields"])}


def _wire(row: Row) -> dict[str, object]:
    return {**plain(row), "amount": money(row["amount"])}


CUSTOMERS = Listing(
    "customers",
    _customer,
    page="""
        SELECT sequence, core_id, customer_id, kind, business_customer_id, status, fields
        FROM core_customer WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    newest="""
        SELECT sequence, core_id, customer_id, kind, business_customer_id, status, fields
        FROM core_customer WHERE sequence < $2 ORDER BY sequence DESC LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, core_id, customer_id, kind, business_customer_id, status, fields
            FROM core_customer
            WHERE core_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_customer="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, core_id, customer_id, kind, business_customer_id, status, fields
            FROM core_customer
            WHERE customer_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
EXTERNAL_ACCOUNTS = Listing(
    "external_accounts",
    plain,
    page="""
        SELECT sequence, external_account_id, core_id,
            (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = link.core_id) AS customer_id,
            routing_number, account_number, status, is_primary AS primary
        FROM external_account AS link WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, external_account_id, core_id,
                (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = link.core_id) AS customer_id,
                routing_number, account_number, status, is_primary AS primary
            FROM external_account AS link
            WHERE external_account_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_customer="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, external_account_id, core_id,
                (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = link.core_id) AS customer_id,
                routing_number, account_number, status, is_primary AS primary
            FROM external_account AS link
            WHERE core_id IN (SELECT core_id FROM core_customer WHERE customer_id = ANY($3))
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
ACCOUNTS = Listing(
    "accounts",
    plain,
    page="""
        SELECT sequence, account_id, account_number, core_id,
            (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = account.core_id) AS customer_id,
            account_group, status
        FROM account WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, account_id, account_number, core_id,
                (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = account.core_id) AS customer_id,
                account_group, status
            FROM account
            WHERE account_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    by_customer="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, account_id, account_number, core_id,
                (SELECT customer_id FROM core_customer AS owner WHERE owner.core_id = account.core_id) AS customer_id,
                account_group, status
            FROM account
            WHERE core_id IN (SELECT core_id FROM core_customer WHERE customer_id = ANY($3))
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
WIRES = Listing(
    "wires",
    _wire,
    page="""
        SELECT sequence, transaction_id, state, amount, account_id, external_account_id, reason,
            return_transaction_id
        FROM wire WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
    newest="""
        SELECT sequence, transaction_id, state, amount, account_id, external_account_id, reason,
            return_transaction_id
        FROM wire WHERE sequence < $2 ORDER BY sequence DESC LIMIT $1
    """,
    by_id="""
        WITH chosen AS MATERIALIZED (
            SELECT sequence, transaction_id, state, amount, account_id, external_account_id, reason,
                return_transaction_id
            FROM wire
            WHERE transaction_id = ANY($3)
        )
        SELECT * FROM chosen WHERE sequence > $2 ORDER BY sequence LIMIT $1
    """,
)
