"""Transactions: what was posted to an account."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.periods import broken_period

TransactionType = TypeAliasType(
    "TransactionType",
    Literal["deposit", "withdrawal", "wire", "ach", "fee", "interest", "return"],
)


class ListTransactions(Command):
    """`start_date` and `end_date` are days of `settled_at` at the bank, both inclusive."""

    account_id: str
    transaction_id: f.FilterId | None = None
    start_date: f.CalendarDate | None = None
    end_date: f.CalendarDate | None = None
    page: f.Page = 1
    limit: f.Limit = 50

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class Transaction(Model):
    transaction_id: str
    account_number: str
    account_group: str
    type: TransactionType
    settled_at: f.UtcDateTime
    counterparty_name: str | None
    counterparty_id: str | None
    amount: Annotated[Decimal, Field(ge=0)]
    debit_credit_flag: Annotated[
        bool, Field(description="True for a debit: money leaving the account")
    ]
    tx_uuid: Annotated[f.UuidText, Field(description="The provider's id of the posting")]


class TransactionEventData(Transaction):
    """As `Transaction`; the account number is cut to the last four."""

    object: str = "transaction"
    account_id: str
    customer_id: str
