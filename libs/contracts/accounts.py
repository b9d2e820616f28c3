"""Accounts, their balances and linked external accounts."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, StringConstraints

from libs.contracts.fields import UtcDateTime
from libs.contracts.model import Command, Model
from libs.contracts.sensitive import Sensitive

FullExternalAccountNumber = Annotated[str, Sensitive()]


class ListPartnerAccounts(Command):
    pass


class GetAccount(Command):
    account_id: str


class GetBalance(Command):
    account_id: str


class GetExternalAccount(Command):
    account_id: str


class ListCustomerAccounts(Command):
    pass


class ListExternalAccounts(Command):
    pass


class AccountSummary(Model):
    id: str
    account_number: str
    account_group: str
    account_title: str


class PartnerAccountSummary(AccountSummary):
    status: str
    interest_earned_year_to_date: Decimal
    annual_percentage_yield_earned: Decimal
    close_date: UtcDateTime | None


class AccountList(Model):
    name: str
    dba_name: str | None
    accounts: list[AccountSummary]


class PartnerAccountList(Model):
    name: str
    dba_name: str | None
    accounts: list[PartnerAccountSummary]


class Account(AccountSummary):
    name: str
    dba_name: str | None
    status: str
    interest_earned_year_to_date: Decimal
    annual_percentage_yield_earned: Decimal
    is_restricted: bool
    close_date: UtcDateTime | None


class Money(Model):
    amount: Decimal
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class Balance(Model):
    account_id: str
    account_number: str
    available_balance: Money
    held_balance: Money
    total_balance: Money
    system_timestamp: UtcDateTime


class ExternalAccount(Model):
    """The external account linked to an account, with its full number."""

    external_account_id: str
    external_account_number: FullExternalAccountNumber
    external_account_title: str
    external_institution_aba: str
    external_institution_name: str


class LinkedExternalAccount(Model):
    external_account_id: str
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: Annotated[str, Field(description="The last four digits")]
    primary: bool


class AccountEventData(Account):
    """As `Account`; the account number is cut to the last four."""

    object: str = "account"
    customer_id: str
