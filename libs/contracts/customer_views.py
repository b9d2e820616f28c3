"""Customers as callers read them."""

from __future__ import annotations

from datetime import date
from typing import Literal

from libs.contracts.accounts import AccountStatus
from libs.contracts.customers import Address, CustomerStatus
from libs.contracts.fields import UtcDateTime
from libs.contracts.model import Model


class OnboardedBusiness(Model):
    """The business of an onboarding."""

    customer_id: str
    """The business's id here, by which it is read and updated."""
    account_id: str | None
    """The id of its account, by which balances, transactions and wires are asked for; null until the account is open.
    """
    account_number: str | None
    """The full number of its account; null until the account is open."""


class OnboardedExternalBankAccount(Model):
    """The external bank account of an onboarding."""

    external_bank_account_id: str | None
    """Its id, which wires are sent to; null until core banking has linked it."""


class OnboardedPerson(Model):
    """A person of an onboarding."""

    customer_id: str
    """The person's id: the `person_id` of updates."""
    first_name: str
    """The first name."""
    last_name: str
    """The last name."""


class OnboardingResult(Model):
    """What came of an onboarding so far. Ids are null until core banking has given them."""

    status: CustomerStatus
    """What verification has decided."""
    business: OnboardedBusiness
    """The business."""
    external_bank_account: OnboardedExternalBankAccount
    """Its external bank account."""
    persons: list[OnboardedPerson]
    """Its persons, in the order in which they were sent."""


class ExternalBankAccountAdded(Model):
    """The external bank account that was added."""

    external_bank_account_id: str
    """Its id."""


class Issue(Model):
    """Something that verification wants, of the business or of a person."""

    code: str
    """What it is, as a code of the identity provider's list; `provider_refused` when an application was refused
    outright.
    """
    detail: str
    """The same as a sentence for a person."""
    person_id: str | None
    """The person that it is about, by `customer_id`; null for the business."""


class BusinessView(Model):
    """A business without what is secret about it."""

    business_name: str
    """The legal name."""
    dba: str | None
    """The name under which it does business."""
    naics_code: str
    """The NAICS code of its industry."""
    business_description: str | None
    """What it does."""
    formation_state: str
    """The state in which it was formed, as a USPS code."""
    formation_date: date
    """When it was formed."""
    phone: str
    """In E.164."""
    email: str
    """Its e-mail address."""
    website: str | None
    """Its web site."""
    business_address: Address
    """Where it does business."""
    mailing_address: Address
    """Where it gets mail."""
    backup_withholding: bool
    """Whether it is subject to backup withholding."""
    is_public: bool
    """Whether its shares are traded publicly."""
    government_affiliated: bool
    """Whether it is affiliated with a government."""
    affiliated_entities: str | None
    """Other entities that it is affiliated with."""
    operations_abroad: bool
    """Whether it has operations outside the US."""
    international_customers_served: bool
    """Whether it has customers outside the US."""


class BusinessDetails(BusinessView):
    """A business as it is read."""

    ein: str
    """The last four digits of the EIN."""


class PersonSummary(Model):
    """A person of a business."""

    customer_id: str
    """The person's id: the `person_id` of updates."""
    first_name: str
    """The first name."""
    last_name: str
    """The last name."""
    status: CustomerStatus
    """What verification has decided of the person."""


class CustomerAccount(Model):
    """An account of a customer."""

    id: str
    """The account's id: the `account_id` of other operations."""
    account_number: str
    """The full account number; in events its last four digits, or its last half where it has less than eight."""
    status: AccountStatus
    """The account's status."""


class CustomerExternalBankAccount(Model):
    """An external bank account of a customer."""

    external_bank_account_id: str
    """Its id: the `external_account_id` of wires."""
    bank_name: str
    account_number: str
    """The last four digits; of a number of less than eight the last half."""
    primary: bool


class CustomerBase(Model):
    customer_id: str
    """The business's id."""
    status: CustomerStatus
    """What verification has decided."""
    issues: list[Issue]
    """What verification wants; empty when it wants nothing."""
    persons: list[PersonSummary]
    """Its persons."""
    accounts: list[CustomerAccount]
    """Its accounts; empty until one is open."""
    external_bank_accounts: list[CustomerExternalBankAccount]
    """Its linked external bank accounts, the primary one first."""
    created_at: UtcDateTime
    updated_at: UtcDateTime
    """When the status, the data or the verification of the business itself last changed. A change of its persons,
    accounts or external bank accounts does not move it: their events have its time.
    """


class Customer(CustomerBase):
    """A business customer."""

    business: BusinessDetails
    """The business."""


class CustomerEventData(CustomerBase):
    """As `Customer`, for events: no part of the EIN, account numbers masked."""

    object: Literal["customer"] = "customer"
    business: BusinessView
    """The business, without its EIN."""


class PersonEventData(PersonSummary):
    """A person, in events."""

    object: Literal["person"] = "person"
    business_customer_id: str
    """The business that the person belongs to."""


class ExternalAccountEventData(Model):
    """A linked external account, in events."""

    object: Literal["external_account"] = "external_account"
    external_account_id: str
    customer_id: str
    """The business that it belongs to."""
    bank_name: str
    name_on_account: str
    routing_number: str
    account_number: str
    """The last four digits; of a number of less than eight the last half."""
    primary: bool
