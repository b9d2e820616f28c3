"""Accounts at other banks, linked to a business. At most one of a customer's is primary.

Every change holds the lock of the customer's row, so that the rules over all of its links hold under concurrency.
"""

from __future__ import annotations

from typing import Annotated

import uuid_utils
from pydantic import Field

from services.provider_sandbox.core import customers
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import encode
from services.provider_sandbox.fields import Fields
from services.provider_sandbox.operations import Body, Nothing, Refusal, not_found

Text = Annotated[str, Field(min_length=1, max_length=255)]

_LINK = """
    INSERT INTO external_account (external_account_id, core_id, bank_name, name_on_account,
        routing_number, account_number, address_on_account, is_primary)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_CLEAR_PRIMARY = "UPDATE external_account SET is_primary = false WHERE core_id = $1 AND is_primary"
_SET_PRIMARY = "UPDATE external_account SET is_primary = true WHERE external_account_id = $1"
_CLOSE = """
    UPDATE external_account SET status = 'closed', is_primary = false
    WHERE external_account_id = $1
"""
_SET_NEWEST_PRIMARY = """
    UPDATE external_account SET is_primary = true
    WHERE external_account_id = (
        SELECT external_account_id FROM external_account
        WHERE core_id = $1 AND status = 'open' ORDER BY sequence DESC LIMIT 1
    )
"""
_IS_LINKED = """
    SELECT true FROM external_account WHERE core_id = $1 AND routing_number = $2
        AND account_number = $3 AND status = 'open'
"""
_LOCK_CUSTOMER = """
    SELECT core_id FROM core_customer JOIN external_account USING (core_id)
    WHERE external_account_id = $1 FOR NO KEY UPDATE OF core_customer
"""
_FIND = """
    SELECT core_id, customer_id, is_primary, external_account.status FROM external_account
    JOIN core_customer USING (core_id) WHERE core_id = $1 AND external_account_id = $2
"""


class CreateExternalAccount(Body):
    core_id: Text
    bank_name: Text
    name_on_account: Text
    routing_number: Annotated[str, Field(pattern="^[0-9]{9}$")]
    account_number: Annotated[str, Field(pattern="^[0-9]{4,17}$")]
    address_on_account: Fields
    primary: bool


async def create_external_account(
    connection: Connection, _: str, body: CreateExternalAccount
) -> object:
    customer = await customers.lock_open(connection, body.core_id)
    if customer["kind"] != "business":
        raise Refusal(422, "not_a_business", "External accounts are linked to businesses.")
    await _refuse_linked(connection, body)
    if body.primary:
        await connection.execute(
            _CLEAR_PRIMARY,
            body.core_id,
        )
    external_account_id = f"ext_{uuid_utils.uuid7().hex}"
    await connection.execute(
        _LINK,
        external_account_id,
        body.core_id,
        body.bank_name,
        body.name_on_account,
        body.routing_number,
        body.account_number,
        encode(body.address_on_account).decode(),
        body.primary,
    )
    return {
        "external_account_id": external_account_id,
        "customer_id": customer["customer_id"],
        "primary": body.primary,
    }


async def make_primary(
    connection: Connection, external_account_id: str, _: Nothing
) -> dict[str, object]:
    """Make an open one the primary one of its customer; the one that was is none any more."""
    link = await _lock(connection, external_account_id)
    if link["status"] == "closed":
        raise Refusal(409, "external_account_closed", "The external account is closed.")
    await connection.execute(
        _CLEAR_PRIMARY,
        link["core_id"],
    )
    await connection.execute(
        _SET_PRIMARY,
        external_account_id,
    )
    return {
        "external_account_id": external_account_id,
        "customer_id": link["customer_id"],
        "primary": True,
    }


async def close_external_account(
    connection: Connection, external_account_id: str, _: Nothing
) -> object:
    """Unlink. When it was the primary one, the newest that is left becomes primary."""
    link = await _lock(connection, external_account_id)
    await connection.execute(
        _CLOSE,
        external_account_id,
    )
    if link["is_primary"]:
        await connection.execute(
            _SET_NEWEST_PRIMARY,
            link["core_id"],
        )
    return {
        "external_account_id": external_account_id,
        "customer_id": link["customer_id"],
        "primary": False,
        "status": "closed",
    }


async def _refuse_linked(connection: Connection, body: CreateExternalAccount) -> None:
    linked = await connection.fetchval(
        _IS_LINKED,
        body.core_id,
        body.routing_number,
        body.account_number,
    )
    if linked:
        raise Refusal(409, "already_linked", "The customer has linked this account already.")


async def _lock(connection: Connection, external_account_id: str) -> Row:
    """The link, with its customer's row locked before it is read."""
    core_id = await connection.fetchval(
        _LOCK_CUSTOMER,
        external_account_id,
    )
    link = await connection.fetchrow(
        _FIND,
        core_id,
        external_account_id,
    )
    if link is None:
        raise not_found("external account")
    return link
