"""Transactions: what was posted to an account."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.accounts import AccountGroup
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.named import Named
from libs.contracts.periods import broken_period

TransactionType = Annotated[
    Literal["deposit", "withdrawal", "wire", "ach", "fee", "interest", "return"],
    Named("TransactionType", "What kind of posting a transaction is."),
]


class ListTransactions(Command):
    """List what was posted to an account, newest first."""

    account_id: str
    transaction_id: f.ResourceId | None = None
    """Only the transaction with this id."""
    start_date: f.CalendarDate | None = None
    """Only what settled on this day or later, by the bank's calendar (America/New_York)."""
    end_date: f.CalendarDate | None = None
    """Only what settled on this day or earlier."""
    page: f.Page = 1
    limit: f.Limit = 50

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class Transaction(Model):
    """What was posted to an account. `amount` is never negative: `debit_credit_flag` says which way the money went."""

    transaction_id: str
    """Its id; of a wire the id that `sendWire` returned."""
    account_number: str
    """The full account number; in events its last four digits, or its last half where it has less than eight."""
    account_group: AccountGroup
    """What kind of account it is."""
    type: TransactionType
    """What kind of posting it is."""
    settled_at: f.UtcDateTime
    """When it was posted."""
    counterparty_name: str | None
    """Who the money came from or went to."""
    counterparty_id: str | None
    """The bank's id of the counterparty."""
    amount: Annotated[Decimal, Field(ge=0)]
    """US dollars, never negative."""
    debit_credit_flag: Annotated[
        bool, Field(description="True for a debit: money leaving the account")
    ]
    tx_uuid: Annotated[
        f.UuidText,
        Field(
            description="The id of the posting: the provider's where that is a UUID, else one that is made of it"
        ),
    ]


class TransactionEventData(Transaction):
    """As `Transaction`; the account number is masked."""

    object: Literal["transaction"] = "transaction"
    account_id: str
    customer_id: str
