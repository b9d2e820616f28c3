"""Accounts: opened and closed by core banking, shown by the financial provider, reported in its feed."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import uuid_utils

from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.feed import publish
from services.provider_sandbox.operations import Refusal, not_found

_OPEN = """
    WITH own AS (
        INSERT INTO ledger_account (ledger_account_id, owner) VALUES ($1, 'customer')
    )
    INSERT INTO account (account_id, core_id, account_group, account_title)
    VALUES ($1, $2, $3, $4)
"""
_FIND = "SELECT * FROM account_of_customer WHERE account_id = $1"
_LOCK = "SELECT FROM account WHERE account_id = $1 FOR UPDATE"
_CLOSE = "UPDATE account SET status = 'closed', closed_at = clock_timestamp() WHERE account_id = $1"
_SET_RESTRICTED = "UPDATE account SET is_restricted = $2 WHERE account_id = $1"
# The ids once more by themselves: a plan that was made while there were few accounts would go on reading all of them.
_HOLD = """
    UPDATE account SET held = account.held + more.amount
    FROM unnest($1::text[], $2::numeric[]) AS more (account_id, amount)
    WHERE account.account_id = more.account_id AND account.account_id = ANY($1)
"""


def shape(account: Row) -> dict[str, object]:
    """The account as the financial provider shows it."""
    closed_at = account["closed_at"]
    return {
        "account_id": account["account_id"],
        "customer_id": account["customer_id"],
        "account_number": account["account_number"],
        "account_group": account["account_group"],
        "account_title": account["account_title"],
        "name": account["name"],
        "dba_name": account["dba_name"],
        "status": account["status"],
        "is_restricted": account["is_restricted"],
        "interest_earned_year_to_date": money(account["interest_earned_year_to_date"]),
        "annual_percentage_yield_earned": money(account["annual_percentage_yield_earned"]),
        "closed_at": None if closed_at is None else instant(closed_at),
    }


def balances(account: Row) -> dict[str, str]:
    return {
        "available": money(account["total"] - account["held"]),
        "held": money(account["held"]),
        "total": money(account["total"]),
    }


async def open_account(connection: Connection, core_id: str, group: str, title: str) -> Row:
    account_id = f"acc_{uuid_utils.uuid7().hex}"
    await connection.execute(
        _OPEN,
        account_id,
        core_id,
        group,
        title,
    )
    account = await find(connection, account_id)
    await _report(connection, account, "account.opened")
    return account


async def find(connection: Connection, account_id: str) -> Row:
    account = await connection.fetchrow(_FIND, account_id)
    if account is None:
        raise not_found("account")
    return account


async def lock(connection: Connection, account_id: str) -> Row:
    """The account as it is until this transaction ends."""
    await connection.execute(_LOCK, account_id)
    return await find(connection, account_id)


async def close(connection: Connection, account: Row) -> Row:
    """Close a locked account with any balance; a closed one is not changed."""
    if account["status"] == "closed":
        return account
    await connection.execute(
        _CLOSE,
        account["account_id"],
    )
    return await _changed(connection, account, "account.closed")


async def set_restricted(connection: Connection, account: Row, restricted: bool) -> Row:
    """Restrict a locked account, or lift the restriction; without a change nothing is reported."""
    if account["status"] == "closed":
        raise account_closed()
    if account["is_restricted"] == restricted:
        return account
    await connection.execute(
        _SET_RESTRICTED,
        account["account_id"],
        restricted,
    )
    event = "account.restricted" if restricted else "account.unrestricted"
    return await _changed(connection, account, event)


async def hold(connection: Connection, holds: Iterable[tuple[str, Decimal]]) -> None:
    """Hold this much more of locked accounts' money; a negative amount releases."""
    sums: dict[str, Decimal] = {}
    for account_id, amount in holds:
        sums[account_id] = sums.get(account_id, Decimal(0)) + amount
    await connection.execute(_HOLD, list(sums.keys()), list(sums.values()))


def account_closed() -> Refusal:
    return Refusal(409, "account_closed", "The account is closed.")


def require_open(account: Row) -> None:
    if account["status"] == "closed":
        raise account_closed()


def require_spendable(account: Row) -> None:
    """Refuse to let money leave an account that is closed or restricted."""
    require_open(account)
    if account["is_restricted"]:
        raise Refusal(409, "account_restricted", "The account is restricted.")


async def _changed(connection: Connection, account: Row, event: str) -> Row:
    changed = await find(connection, account["account_id"])
    await _report(connection, changed, event)
    return changed


async def _report(connection: Connection, account: Row, event: str) -> None:
    content = {
        "account_id": account["account_id"],
        "customer_id": account["customer_id"],
        "data": shape(account),
    }
    await publish(connection, "financial", event, content)
