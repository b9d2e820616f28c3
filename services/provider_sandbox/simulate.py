"""`/simulate`: makes things happen that in life happen by themselves. For tests, without token or key."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import BeforeValidator, Field

from services.provider_sandbox import accounts, ledger
from services.provider_sandbox.database import Connection
from services.provider_sandbox.identity import records
from services.provider_sandbox.identity.verdicts import UNDECIDED, Decision
from services.provider_sandbox.operations import (
    Body,
    Nothing,
    Operations,
    Refusal,
    Write,
    not_found,
)

LARGEST_AMOUNT = Decimal("9999999999999999.99")


def _amount(value: object) -> object:
    if isinstance(value, str):
        try:
            return Decimal(value) if value.isascii() else value
        except InvalidOperation:
            return value
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    Field(gt=0, le=LARGEST_AMOUNT, decimal_places=2, allow_inf_nan=False),
]
"""Money as a JSON number or a decimal string: positive, in whole cents."""


class Decide(Body):
    customer_id: str
    decision: Decision


class Deposit(Body):
    account_id: str
    amount: Amount
    counterparty_name: Annotated[str, Field(min_length=1, max_length=255)] = "Cash deposit"


async def decide_identity(connection: Connection, _: str, body: Decide) -> object:
    """Give every record of the customer that is still undecided the provider's verdict."""
    found = await connection.fetch(
        "SELECT * FROM identity_record WHERE customer_id = $1 ORDER BY identity_id FOR UPDATE",
        body.customer_id,
    )
    if not found:
        raise not_found("identity")
    undecided = [record for record in found if record["status"] in UNDECIDED]
    if not undecided:
        raise Refusal(409, "already_decided", "Nothing of this customer is undecided.")
    for record in undecided:
        await records.set_status(connection, record, body.decision)
    return {"decided": len(undecided)}


async def deposit(connection: Connection, _: str, body: Deposit) -> object:
    account = await accounts.lock(connection, body.account_id)
    if account["status"] == "closed":
        raise accounts.account_closed()
    entry = ledger.Entry(
        type="deposit",
        counterparty_name=body.counterparty_name,
        postings={ledger.CASH: -body.amount, body.account_id: body.amount},
    )
    await ledger.post(connection, entry)
    after = await accounts.find(connection, body.account_id)
    return {
        "transaction_id": entry.transaction_id,
        "account_id": body.account_id,
        "amount": f"{body.amount:.2f}",
        **accounts.balances(after),
    }


async def restrict(connection: Connection, account_id: str, _: Nothing) -> object:
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.set_restricted(connection, account, True))


async def unrestrict(connection: Connection, account_id: str, _: Nothing) -> object:
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.set_restricted(connection, account, False))


async def close(connection: Connection, account_id: str, _: Nothing) -> object:
    """Close by decree, whatever the balance: the money stays on the books."""
    account = await accounts.lock(connection, account_id)
    return accounts.shape(await accounts.close(connection, account))


OPERATIONS: Operations = (
    Write("decide_identity", "POST", "/simulate/identity/decisions", decide_identity, Decide),
    Write("deposit", "POST", "/simulate/deposits", deposit, Deposit),
    Write("restrict", "POST", "/simulate/accounts/{id}/restrict", restrict, Nothing),
    Write("unrestrict", "POST", "/simulate/accounts/{id}/unrestrict", unrestrict, Nothing),
    Write("close", "POST", "/simulate/accounts/{id}/close", close, Nothing),
)
