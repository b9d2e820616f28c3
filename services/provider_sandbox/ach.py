"""ACH requests: money that leaves an account by the clearing house, pending → submitted → settled → returned.

From submission the amount is held; settlement debits it; a return releases it, or after settlement credits it anew.
"""

from __future__ import annotations

from decimal import Decimal

import uuid_utils

from services.provider_sandbox import accounts, ledger, transactions
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import instant, money
from services.provider_sandbox.feed import publish
from services.provider_sandbox.nacha import ReturnCode, description_of
from services.provider_sandbox.operations import Refusal, not_found

_CREATE = """
    INSERT INTO ach_request (reference_id, account_id, amount) VALUES ($1, $2, $3) RETURNING *
"""
_ACCOUNT_OF = "SELECT account_id FROM ach_request WHERE reference_id = $1"
_FIND = "SELECT * FROM ach_request WHERE reference_id = $1"
_SET_STATUS = """
    UPDATE ach_request SET status = $2, return_code = $3, return_description = $4,
        updated_at = clock_timestamp()
    WHERE reference_id = $1 RETURNING *
"""
_PRIMARY_HOLDER = "SELECT name_on_account FROM external_account WHERE core_id = $1 AND is_primary"


def shape(request: Row) -> dict[str, object]:
    return {
        "reference_id": request["reference_id"],
        "originating_account_id": request["account_id"],
        "status": request["status"],
        "amount": money(request["amount"]),
        "return_code": request["return_code"],
        "return_description": request["return_description"],
        "created_at": instant(request["created_at"]),
        "updated_at": instant(request["updated_at"]),
    }


async def create(connection: Connection, account_id: str, amount: Decimal) -> Row:
    account = await accounts.lock(connection, account_id)
    accounts.require_spendable(account)
    request = await connection.fetchrow(
        _CREATE,
        f"ach_{uuid_utils.uuid7().hex}",
        account_id,
        amount,
    )
    assert request is not None
    await _report(connection, account, request)
    return request


async def submit(connection: Connection, reference_id: str) -> Row:
    """Hand it to the clearing house and hold its amount."""
    account, request = await _lock(connection, reference_id)
    _require_status(request, "pending")
    accounts.require_spendable(account)
    transactions.require_funds(account, request["amount"])
    await accounts.hold(connection, [(account["account_id"], request["amount"])])
    request = await _set_status(connection, request, "submitted")
    await _report(connection, account, request)
    return request


async def settle(connection: Connection, reference_id: str) -> Row:
    """Debit what was held. That the account was closed or restricted meanwhile does not stop it."""
    account, request = await _lock(connection, reference_id)
    _require_status(request, "submitted")
    await accounts.hold(connection, [(account["account_id"], -request["amount"])])
    account = await accounts.find(connection, account["account_id"])
    request = await _set_status(connection, request, "settled")
    await _book(connection, account, -request["amount"], "ach")
    await _report(connection, account, request)
    return request


async def send_back(connection: Connection, reference_id: str, code: ReturnCode) -> Row:
    """The receiving bank returns it: the hold ends, or the money comes back as a credit."""
    account, request = await _lock(connection, reference_id)
    _require_status(request, "submitted", "settled")
    was_settled = request["status"] == "settled"
    request = await _set_status(connection, request, "returned", code)
    if was_settled:
        await _book(connection, account, request["amount"], "return")
    else:
        await accounts.hold(connection, [(account["account_id"], -request["amount"])])
    await _report(connection, account, request)
    return request


async def _lock(connection: Connection, reference_id: str) -> tuple[Row, Row]:
    """The account, then the request, as they are until this transaction ends."""
    account_id = await connection.fetchval(_ACCOUNT_OF, reference_id)
    if account_id is None:
        raise not_found("ACH request")
    account = await accounts.lock(connection, account_id)
    request = await connection.fetchrow(_FIND, reference_id)
    assert request is not None
    return account, request


def _require_status(request: Row, *allowed: str) -> None:
    if request["status"] not in allowed:
        raise Refusal(409, "invalid_state", f"The ACH request is {request['status']}.")


async def _set_status(
    connection: Connection, request: Row, status: str, code: ReturnCode | None = None
) -> Row:
    changed = await connection.fetchrow(
        _SET_STATUS,
        request["reference_id"],
        status,
        code,
        None if code is None else description_of(code),
    )
    assert changed is not None
    return changed


async def _book(
    connection: Connection, account: Row, amount: Decimal, entry_type: ledger.EntryType
) -> None:
    """Post against the holder of the primary external account."""
    name: str | None = await connection.fetchval(
        _PRIMARY_HOLDER,
        account["core_id"],
    )
    entry = ledger.with_customer(account["account_id"], amount, entry_type, name or "ACH transfer")
    await transactions.book(connection, account, entry)


async def _report(connection: Connection, account: Row, request: Row) -> None:
    event = "created" if request["status"] == "pending" else request["status"]
    content = {
        "account_id": account["account_id"],
        "customer_id": account["customer_id"],
        "data": shape(request),
    }
    await publish(connection, "financial", f"ach.{event}", content)
