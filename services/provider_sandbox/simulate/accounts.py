"""The bank restricts and closes accounts, gives them a reserve, and calculates settlements with it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.provider_sandbox import accounts, settlement
from services.provider_sandbox.amounts import SignedAmount
from services.provider_sandbox.calendar import Day
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Body, Nothing

Text = Annotated[str, Field(min_length=1, max_length=255)]


class Calculate(Body):
    account_id: str
    settlement_date: Day
    amount: SignedAmount
    ach_file: Text | None = None
    source: Text | None = None
    """The source that the calculation is shown to; None: every source."""


async def restrict(connection: Connection, account_id: str, _: Nothing) -> object:
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.set_restricted(connection, account, True))


async def unrestrict(connection: Connection, account_id: str, _: Nothing) -> object:
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.set_restricted(connection, account, False))


async def close(connection: Connection, account_id: str, _: Nothing) -> object:
    """Close with any balance: the money stays on the books."""
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.close(connection, account))


async def open_reserve(connection: Connection, account_id: str, _: Nothing) -> object:
    return accounts.shape(await settlement.open_reserve(connection, account_id))


async def calculate(connection: Connection, _: str, body: Calculate) -> object:
    calculation = await settlement.calculate(
        connection,
        body.account_id,
        body.settlement_date,
        body.amount,
        body.ach_file,
        body.source,
    )
    return settlement.shape(calculation)
