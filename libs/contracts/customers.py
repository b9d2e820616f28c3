"""Customers as callers send them: a business, its persons, its external bank account; and their updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from libs.contracts import fields as f
from libs.contracts.ids import OurId
from libs.contracts.model import BrokenRule, Command, Model, sparse
from libs.contracts.named import Named

MAX_PERSONS = 10


class CustomerStatus(StrEnum):
    """What verification has decided: `awaiting_documents` needs corrections, `pending_review` a person's look;
    `approved`, `denied` and `canceled` are decisions.
    """

    PENDING = "pending"
    AWAITING_DOCUMENTS = "awaiting_documents"
    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    DENIED = "denied"
    CANCELED = "canceled"


EmploymentStatus = Annotated[
    Literal["employed", "retired", "unemployed"],
    Named("EmploymentStatus", "Whether a person works."),
]


class Address(Model):
    """A postal address. `state` and `zip_code` have rules when `country` is `US`; elsewhere they are any text."""

    street_1: f.Text
    """House number and street."""
    street_2: f.Text | None = None
    """Apartment, suite, unit; null when there is none."""
    city: f.Text
    """The city."""
    country: f.CountryCode = "US"
    """The ISO 3166 alpha-2 code; `US` when it is not given."""
    state: f.Text
    """When `country` is `US`, the USPS code of a state, DC or a territory; elsewhere the region's name."""
    zip_code: f.Text
    """When `country` is `US`, `12345` or `12345-6789`; elsewhere the postal code."""

    @field_validator("state")
    @classmethod
    def _state(cls, value: str, info: ValidationInfo) -> str:
        return f.usps_state(value) if info.data.get("country", "US") == "US" else value

    @field_validator("zip_code")
    @classmethod
    def _zip_code(cls, value: str, info: ValidationInfo) -> str:
        return f.us_zip_code(value) if info.data.get("country", "US") == "US" else value


class Business(Model):
    """A business as it is onboarded."""

    business_name: f.Text
    """The legal name."""
    dba: f.Text | None = None
    """The name under which it does business ("doing business as")."""
    naics_code: f.NaicsCode
    """The NAICS code of its industry, 2 to 6 digits."""
    business_description: f.LongText | None = None
    """What it does, in its own words."""
    formation_state: f.UspsCode
    """The state in which it was formed, as a USPS code."""
    formation_date: f.FormationDate
    """When it was formed; not before 1600-01-01, not in the future."""
    ein: f.Ein
    """Its employer identification number, with or without `-` after two digits; the first two are a prefix that the IRS
    assigns.
    """
    phone: f.Phone
    """E.164 (`+12075550142`) of a length that the country has, or ten US digits in any usual punctuation, of which the
    first and the fourth are 2 to 9.
    """
    email: f.Email
    """An e-mail address without a name beside it, with at most 64 characters before the `@`, of a domain that is not
    reserved, as `.test` is.
    """
    website: f.WebUrl | None = None
    """The absolute URL of its web site. A part of its host that begins with `xn--` is valid Punycode."""
    business_address: Address
    """Where it does business."""
    mailing_address: Address | None = None
    """Where it gets mail. An onboarding that does not give it takes the business address; a later update of that
    address alone leaves it as it is.
    """
    backup_withholding: bool = False
    """Whether it is subject to backup withholding."""
    is_public: bool = False
    """Whether its shares are traded publicly."""
    government_affiliated: bool = False
    """Whether it belongs to, or is affiliated with, a government."""
    affiliated_entities: f.Text | None = None
    """Other entities that it is affiliated with."""
    operations_abroad: bool = False
    """Whether it has operations outside the US."""
    international_customers_served: bool = False
    """Whether it has customers outside the US."""


class PersonFields(Model):
    """What can be said of a person at onboarding and later."""

    first_name: f.Text
    """The first name."""
    middle_name: f.Text | None = None
    """The middle name."""
    last_name: f.Text
    """The last name."""
    date_of_birth: f.BirthDate
    """The date of birth; not before 1900-01-01, and a person is at least 18 years old."""
    home_address: Address
    """Where the person lives."""
    tin: f.Tin
    """A valid SSN or ITIN, nine digits with or without `-`."""
    email: f.Email
    """An e-mail address without a name beside it, with at most 64 characters before the `@`, of a domain that is not
    reserved, as `.test` is.
    """
    phone: f.Phone
    """E.164 (`+12075550143`) of a length that the country has, or ten US digits in any usual punctuation, of which the
    first and the fourth are 2 to 9.
    """
    employer_name: f.Text | None = None
    """Who employs the person."""
    occupation: f.Text | None = None
    """What the person does for a living."""
    ownership_percentage: f.Percentage = Decimal(0)
    """The share of the business that the person owns, 0 to 100; those of all persons add up to at most 100."""
    work_title: f.Text | None = None
    """The person's title in the business."""
    controller: bool = False
    """Whether the person controls the business; at least one person does."""


class Person(PersonFields):
    """A person at onboarding; a supplied `id` becomes the person's id."""

    id: f.Uuid | None = None
    """An id of your own for the person, unique among all your persons and businesses; it becomes the person's
    `customer_id`.
    """
    phone_mobile: f.Phone | None = None
    """A mobile number, as `phone`."""
    gender: f.Text | None = None
    """The gender, in any words."""
    created_at: f.UtcDateTime | None = None
    """When the person was recorded at your side."""


class PersonUpdateFields(PersonFields):
    employment_status: EmploymentStatus | None = None
    """Whether the person works."""


class ExternalBankAccount(Model):
    """The business's account at another bank."""

    bank_name: f.Text
    """The name of the bank."""
    name_on_account: f.Text
    """The name of the account's holder. Receivers of wires see it in Latin letters, and at most 140 characters of
    these.
    """
    routing_number: f.RoutingNumber
    """The bank's routing number: nine digits with a valid ABA checksum, not all zeros."""
    account_number: f.ExternalAccountNumber
    """The full account number, 4 to 17 digits. It is shown to you in full only by `getExternalAccount`."""
    address_on_account: Address
    """The address of the account's holder."""


def broken_person_rules(persons: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with a business's persons as a whole (interface §5): sentences, empty when nothing is."""
    broken = []
    if not any(person.get("controller") is True for person in persons):
        broken.append("at least one person must be a controller")
    shares = [person.get("ownership_percentage") for person in persons]
    # Sums of Decimals are rounded after 28 digits.
    if sum(Fraction(share) for share in shares if isinstance(share, int | Decimal)) > 100:
        broken.append("the ownership percentages add up to more than 100")
    supplied = [str(person["id"]).lower() for person in persons if person.get("id")]
    if len(supplied) != len(set(supplied)):
        broken.append("two persons have the same id")
    return broken


BusinessUpdate = sparse("BusinessUpdate", Business)
PersonUpdate = sparse("PersonUpdate", PersonUpdateFields)


class OnboardCustomer(Command):
    """Onboard a business: its application is stored, the business and each person are verified, and an account is
    opened for it at core banking, with the external bank account linked as the primary one.

    `status` in the answer is what verification has decided so far. Ids of accounts are null until the account is open;
    the events `customer.approved` and `account.opened` tell when that is later. A business whose EIN this partner has
    onboarded already is 409 `already_exists`, unless it was denied or canceled.
    """

    business: Business
    """The business."""
    persons: Annotated[list[Person], Field(min_length=1, max_length=MAX_PERSONS)]
    """Its owners and controllers: 1 to 10, at least one with `controller`."""
    external_bank_account: ExternalBankAccount
    """Its account at another bank, to which it can send wires."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        persons = values.get("persons")
        if not isinstance(persons, list):
            return []
        members = [person for person in persons if isinstance(person, dict)]
        return [(("persons",), rule) for rule in broken_person_rules(members)]


class UpdateBusiness(Command):
    """Change what is known of a business, at the identity provider and at core banking. Send only what changes, also
    within an address; null clears an optional field. When core banking refuses, the identity provider's record is
    restored.
    """

    customer_id: Annotated[str, OurId()]
    """The business's `customer_id`, from onboarding."""
    business: BusinessUpdate  # type: ignore[valid-type]
    """The fields that change."""


class UpdatePerson(PersonUpdate, Command):  # type: ignore[valid-type,misc]
    """Change what is known of a person, at the identity provider and at core banking. Send only what changes, also
    within an address; null clears an optional field.
    """

    person_id: Annotated[str, OurId()]
    """The person's id: the `customer_id` that onboarding returned for the person."""


class AddExternalBankAccount(Command):
    """Link a further external bank account to a business; it becomes the primary one, and the others stay linked. An
    account that is linked already is 409 `already_exists`.
    """

    external_bank_account_id: str
    """A current external bank account of the business: it says whose the new one is. The new one has an id of its own,
    which is returned.
    """
    external_bank_account: ExternalBankAccount
    """The account to add."""


class ListCustomers(Command):
    """List the customers that this partner has onboarded, newest first."""

    page: f.Page = 1
    limit: f.Limit = 50
    status: Annotated[CustomerStatus, Field(strict=False)] | None = None
    """Only customers of this status."""


class GetCustomer(Command):
    """Get a customer: status, what verification wants, its persons, accounts and external bank accounts. The EIN and
    account numbers of other banks are cut to the last four digits, or to the last half where they have less than eight.
    """

    customer_id: Annotated[str, OurId()]
    """The business's `customer_id`, from onboarding."""
