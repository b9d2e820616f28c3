"""Customers as callers read them."""

from __future__ import annotations

from datetime import date

from libs.contracts.customers import Address, CustomerStatus
from libs.contracts.fields import UtcDateTime
from libs.contracts.model import Model


class OnboardedBusiness(Model):
    customer_id: str
    account_id: str | None
    account_number: str | None


class OnboardedExternalBankAccount(Model):
    external_bank_account_id: str | None


class OnboardedPerson(Model):
    customer_id: str
    first_name: str
    last_name: str


class OnboardingResult(Model):
    """Ids are null until core banking has given them."""

    status: CustomerStatus
    business: OnboardedBusiness
    external_bank_account: OnboardedExternalBankAccount
    persons: list[OnboardedPerson]


class ExternalBankAccountAdded(Model):
    external_bank_account_id: str


class Issue(Model):
    """Something that verification wants, of the business (`person_id` null) or of a person."""

    code: str
    detail: str
    person_id: str | None


class BusinessView(Model):
    """A business without what is secret about it."""

    business_name: str
    dba: str | None
    naics_code: str
    business_description: str | None
    formation_state: str
    formation_date: date
    phone: str
    email: str
    website: str | None
    business_address: Address
    mailing_address: Address
    backup_withholding: bool
    is_public: bool
    government_affiliated: bool
    affiliated_entities: str | None
    operations_abroad: bool
    international_customers_served: bool


class BusinessDetails(BusinessView):
    ein: str
    """The last four digits only."""


class PersonSummary(Model):
    customer_id: str
    first_name: str
    last_name: str
    status: CustomerStatus


class CustomerAccount(Model):
    id: str
    account_number: str
    status: str


class CustomerExternalBankAccount(Model):
    external_bank_account_id: str
    bank_name: str
    account_number: str
    """The last four digits only."""
    primary: bool


class CustomerBase(Model):
    customer_id: str
    status: CustomerStatus
    issues: list[Issue]
    persons: list[PersonSummary]
    accounts: list[CustomerAccount]
    external_bank_accounts: list[CustomerExternalBankAccount]
    created_at: UtcDateTime
    updated_at: UtcDateTime


class Customer(CustomerBase):
    business: BusinessDetails


class CustomerEventData(CustomerBase):
    """As `Customer`, for events: no part of the EIN, account numbers cut to the last four."""

    object: str = "customer"
    business: BusinessView


class PersonEventData(PersonSummary):
    object: str = "person"
    business_customer_id: str


class ExternalAccountEventData(Model):
    object: str = "external_account"
    external_account_id: str
    customer_id: str
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    primary: bool
