"""Opening and closing deposit accounts at core banking."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from services.provider_sandbox import accounts
from services.provider_sandbox.core import customers
from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.operations import Body, Nothing, Refusal


class OpenAccount(Body):
    core_id: Annotated[str, Field(min_length=1, max_length=255)]
    account_group: Literal["deposit"]
    account_title: Annotated[str, Field(min_length=1, max_length=255)]


def shape(account: Row) -> dict[str, object]:
    """The account as core banking shows it."""
    keys = ("account_id", "account_number", "customer_id", "account_group", "status")
    return {key: account[key] for key in keys}


async def open_account(connection: Connection, _: str, body: OpenAccount) -> object:
    """Opens one more account each time: that a customer gets one only is the caller's business."""
    customer = await customers.lock_open(connection, body.core_id)
    if customer["kind"] != "business":
        raise Refusal(422, "not_a_business", "Accounts are opened for businesses.")
    account = await accounts.open_account(
        connection, body.core_id, body.account_group, body.account_title
    )
    return shape(account)


async def close_account(connection: Connection, account_id: str, _: Nothing) -> object:
    account = await accounts.lock(connection, account_id)
    if account["total"] != 0 or account["held"] != 0:
        raise Refusal(409, "balance_not_zero", "An account is closed when it is empty.")
    return shape(await accounts.close(connection, account))
