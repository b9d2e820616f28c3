"""Money moves: deposits, withdrawals, fees, interest, and whole histories of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.provider_sandbox import accounts, history, ledger, transactions
from services.provider_sandbox.amounts import Amount
from services.provider_sandbox.calendar import Moment
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Body, Refusal

Name = Annotated[str, Field(min_length=1, max_length=255)]

Direction = Literal["credit", "debit"]

TYPES: dict[Direction, dict[ledger.EntryType, str]] = {
    "credit": {
        "deposit": "Cash deposit",
        "interest": "Interest paid",
        "ach": "ACH transfer",
        "wire": "Wire transfer",
        "return": "Returned payment",
    },
    "debit": {
        "withdrawal": "Cash withdrawal",
        "fee": "Account service fee",
        "ach": "ACH transfer",
        "wire": "Wire transfer",
    },
}
"""What goes in which direction, the usual first, and the counterparty's name where none is given."""


class Deposit(Body):
    account_id: str
    amount: Amount
    counterparty_name: Name = "Cash deposit"


class Transact(Body):
    account_id: str
    amount: Amount
    direction: Direction
    type: ledger.EntryType | None = None
    counterparty_name: Name | None = None
    settled_at: Moment | None = None

    @model_validator(mode="after")
    def _goes_this_way(self) -> Self:
        if self.type is not None and self.type not in TYPES[self.direction]:
            raise ValueError(f"a {self.direction} is one of {', '.join(TYPES[self.direction])}")
        return self


class Fill(Body):
    account_id: str
    transactions: Annotated[int, Field(ge=1, le=history.MOST_TRANSACTIONS)]
    days: Annotated[int, Field(ge=1, le=history.MOST_DAYS)]


async def deposit(connection: Connection, _: str, body: Deposit) -> object:
    account = await accounts.lock(connection, body.account_id)
    accounts.require_open(account)
    entry = ledger.with_customer(body.account_id, body.amount, "deposit", body.counterparty_name)
    booked = await transactions.book(connection, account, entry)
    after = await accounts.find(connection, body.account_id)
    return {
        "transaction_id": booked["transaction_id"],
        "account_id": body.account_id,
        "amount": booked["amount"],
        **accounts.balances(after),
    }


async def transact(connection: Connection, _: str, body: Transact) -> object:
    """Book one transaction, now or in the past. A debit needs available funds now."""
    if body.settled_at is not None and body.settled_at > datetime.now(UTC):
        raise Refusal(422, "invalid", "settled_at: lies in the future.")
    usual = next(iter(TYPES[body.direction]))
    entry_type = body.type or usual
    account = await accounts.lock(connection, body.account_id)
    if body.direction == "debit" and entry_type != "fee":
        accounts.require_spendable(account)
    else:
        accounts.require_open(account)
    entry = ledger.with_customer(
        body.account_id,
        body.amount if body.direction == "credit" else -body.amount,
        entry_type,
        body.counterparty_name or TYPES[body.direction][entry_type],
        body.settled_at,
    )
    booked = await transactions.book(connection, account, entry)
    after = await accounts.find(connection, body.account_id)
    return {**booked, **accounts.balances(after)}


async def fill(connection: Connection, _: str, body: Fill) -> object:
    account = await accounts.lock(connection, body.account_id)
    accounts.require_open(account)
    filled = await history.fill(connection, body.account_id, body.transactions, body.days)
    after = await accounts.find(connection, body.account_id)
    return {"account_id": body.account_id, **filled, **accounts.balances(after)}
