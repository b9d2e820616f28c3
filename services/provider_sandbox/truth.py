"""`/truth`: what the bank believes, in full and in clear, for tests to count against. Without token."""

from __future__ import annotations

from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import instant, money, stored
from services.provider_sandbox.operations import Controls, Query, Read, not_found

_CUSTOMERS = """
    SELECT 'identity' AS api, customer_id, kind, status, fields, identity_id AS id
    FROM identity_record WHERE $1::text IS NULL OR customer_id = $1
    UNION ALL
    SELECT 'core', customer_id, kind, status, fields, core_id
    FROM core_customer WHERE $1::text IS NULL OR customer_id = $1
    ORDER BY api, id
"""
_ACCOUNTS = """
    SELECT account_id, customer_id, account.status
    FROM account JOIN core_customer USING (core_id)
    WHERE $1::text IS NULL OR customer_id = $1 ORDER BY account_id
"""
_EXTERNAL_ACCOUNTS = """
    SELECT external_account_id, customer_id, is_primary AS primary
    FROM external_account AS link JOIN core_customer USING (core_id)
    WHERE link.status = 'open' AND ($1::text IS NULL OR customer_id = $1)
    ORDER BY link.sequence
"""
_IS_LEDGER_ACCOUNT = "SELECT true FROM ledger_account WHERE ledger_account_id = $1"
_LEDGER = """
    SELECT transaction_id, ledger_account_id, amount, type, counterparty_name, posting.settled_at
    FROM posting JOIN journal_entry USING (transaction_id)
    WHERE ledger_account_id = $1 ORDER BY posting.settled_at, sequence
"""
_WIRES = """
    SELECT transaction_id, state, amount, account_id FROM wire
    WHERE $1::text IS NULL OR account_id = $1 ORDER BY sequence
"""


class OfCustomer(Query):
    customer_id: str | None = None


class OfAccount(Query):
    account_id: str


class OfAnyAccount(Query):
    account_id: str | None = None


async def customers(connection: Connection, _: str, query: OfCustomer) -> object:
    """Every record of both providers, canceled and closed ones included, oldest first."""
    rows = await connection.fetch(
        _CUSTOMERS,
        query.customer_id,
    )
    return [
        {
            "api": row["api"],
            "customer_id": row["customer_id"],
            "kind": row["kind"],
            "status": row["status"],
            "fields": stored(row["fields"]),
        }
        for row in rows
    ]


async def accounts(connection: Connection, _: str, query: OfCustomer) -> object:
    rows = await connection.fetch(
        _ACCOUNTS,
        query.customer_id,
    )
    return [dict(row) for row in rows]


async def external_accounts(connection: Connection, _: str, query: OfCustomer) -> object:
    """Those that are linked; one that was closed is none any more."""
    rows = await connection.fetch(
        _EXTERNAL_ACCOUNTS,
        query.customer_id,
    )
    return [dict(row) for row in rows]


async def ledger(connection: Connection, _: str, query: OfAccount) -> object:
    """All postings on a customer's account or on one of the bank's own, in order."""
    known = await connection.fetchval(_IS_LEDGER_ACCOUNT, query.account_id)
    if not known:
        raise not_found("account")
    rows = await connection.fetch(
        _LEDGER,
        query.account_id,
    )
    return [
        {
            "transaction_id": row["transaction_id"],
            "account_id": row["ledger_account_id"],
            "amount": money(row["amount"]),
            "type": row["type"],
            "counterparty_name": row["counterparty_name"],
            "settled_at": instant(row["settled_at"]),
        }
        for row in rows
    ]


async def wires(connection: Connection, _: str, query: OfAnyAccount) -> object:
    """Every wire that was ever accepted, oldest first; a refused one is none."""
    rows = await connection.fetch(
        _WIRES,
        query.account_id,
    )
    return [{**row, "amount": money(row["amount"])} for row in rows]


OPERATIONS: Controls = (
    Read("customers", "/truth/customers", customers, OfCustomer),
    Read("accounts", "/truth/accounts", accounts, OfCustomer),
    Read("external_accounts", "/truth/external-accounts", external_accounts, OfCustomer),
    Read("ledger", "/truth/ledger", ledger, OfAccount),
    Read("wires", "/truth/wires", wires, OfAnyAccount),
)
