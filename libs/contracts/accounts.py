"""Accounts, their balances and linked external accounts."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, WithJsonSchema

from libs.contracts.fields import UtcDateTime
from libs.contracts.model import Command, Model
from libs.contracts.named import Named
from libs.contracts.sensitive import Sensitive

FullExternalAccountNumber = Annotated[str, Sensitive()]


AccountStatus = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": ["pending", "open", "closed"]}),
    Named("AccountStatus", "How far an account has come."),
]
AccountGroup = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": ["deposit", "reserve"]}),
    Named("AccountGroup", "What kind of account it is."),
]


class ListPartnerAccounts(Command):
    """List every account of the partner's customers."""


class GetAccount(Command):
    """Get an account: titles, status, interest, and whether it is restricted."""

    account_id: str


class GetBalance(Command):
    """Get the balance of an account, as the bank has it now: what is available, what is held for wires and ACH requests
    under way, and both together.
    """

    account_id: str


class GetExternalAccount(Command):
    """Get the primary external account that is linked to an account, with its full number: the only place where it is
    shown in full.
    """

    account_id: str


class ListCustomerAccounts(Command):
    """List the customer's accounts."""


class ListExternalAccounts(Command):
    """List the customer's linked external accounts, to which wires can be sent: the primary one first."""


class AccountSummary(Model):
    """An account in a list."""

    id: str
    """The account's id: the `account_id` of other operations."""
    account_number: str
    """The full account number; in events its last four digits, or its last half where it has less than eight."""
    account_group: AccountGroup
    """What kind of account it is."""
    account_title: str
    """The title of the account."""


class PartnerAccountSummary(AccountSummary):
    """An account in the partner's list."""

    status: AccountStatus
    """The account's status."""
    interest_earned_year_to_date: Decimal
    """The interest that it has earned since January 1, in US dollars."""
    annual_percentage_yield_earned: Annotated[Decimal, Field(examples=[4.25])]
    """The annual percentage yield that it earned, in percent: 4.25 is 4.25 %."""
    close_date: UtcDateTime | None
    """When it was closed; null while it is not."""


class AccountList(Model):
    """The customer's accounts."""

    name: str
    """The legal name of the customer."""
    dba_name: str | None
    """The name under which it does business."""
    accounts: list[AccountSummary]
    """All of its accounts."""


class PartnerAccountList(Model):
    """The accounts of the partner's customers."""

    name: str
    """The name of the partner."""
    dba_name: str | None
    """Always null: the list has several businesses."""
    accounts: list[PartnerAccountSummary]
    """All of their accounts."""


class Account(AccountSummary):
    """An account."""

    name: str
    """The legal name of its holder."""
    dba_name: str | None
    """The name under which its holder does business."""
    status: AccountStatus
    """The account's status."""
    interest_earned_year_to_date: Decimal
    """The interest that it has earned since January 1, in US dollars."""
    annual_percentage_yield_earned: Annotated[Decimal, Field(examples=[4.25])]
    """The annual percentage yield that it earned, in percent: 4.25 is 4.25 %."""
    is_restricted: bool
    """Whether the bank has restricted it: no wire can be sent from it."""
    close_date: UtcDateTime | None
    """When it was closed; null while it is not."""


class Money(Model):
    """An amount with its currency."""

    amount: Decimal
    """The amount, in units of the currency."""
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    """The ISO 4217 code of the currency."""


class Balance(Model):
    """The balance of an account at one moment."""

    account_id: str
    account_number: str
    """The full account number."""
    available_balance: Money
    """What can be spent: the total without what is held."""
    held_balance: Money
    """What is held for wires that are accepted and ACH requests that are submitted, until they are debited or end."""
    total_balance: Money
    """All that is in the account."""
    system_timestamp: UtcDateTime
    """The moment, in UTC with microseconds."""


class ExternalAccount(Model):
    """The external account linked to an account, with its full number."""

    external_account_id: str
    """Its id: the `external_account_id` of wires."""
    external_account_number: FullExternalAccountNumber
    """The full account number."""
    external_account_title: str
    """The name of the account's holder."""
    external_institution_aba: str
    """The routing number of its bank."""
    external_institution_name: str
    """The name of its bank."""


class LinkedExternalAccount(Model):
    """A linked external account."""

    external_account_id: str
    """Its id: the `external_account_id` of wires."""
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: Annotated[
        str, Field(description="The last four digits; of a number of less than eight the last half")
    ]
    primary: bool


class AccountEventData(Account):
    """As `Account`; the account number is masked."""

    object: Literal["account"] = "account"
    customer_id: str
    """The business that it belongs to."""
