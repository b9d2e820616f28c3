"""Customers as callers send them: a business, its persons, its external bank account; and their updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from typing_extensions import TypeAliasType

from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Command, Model, sparse

MAX_PERSONS = 10


class CustomerStatus(StrEnum):
    PENDING = "pending"
    AWAITING_DOCUMENTS = "awaiting_documents"
    PENDING_REVIEW = "pending_review"
    APPROVED = "approved"
    DENIED = "denied"
    CANCELED = "canceled"


EmploymentStatus = TypeAliasType("EmploymentStatus", Literal["employed", "retired", "unemployed"])


class Address(Model):
    street_1: f.Text
    street_2: f.Text | None = None
    city: f.Text
    country: f.Country = "US"
    state: f.Text
    zip_code: f.Text

    @field_validator("state")
    @classmethod
    def _state(cls, value: str, info: ValidationInfo) -> str:
        return f.usps_state(value) if info.data.get("country", "US") == "US" else value

    @field_validator("zip_code")
    @classmethod
    def _zip_code(cls, value: str, info: ValidationInfo) -> str:
        return f.us_zip_code(value) if info.data.get("country", "US") == "US" else value


class Business(Model):
    business_name: f.Text
    dba: f.Text | None = None
    naics_code: f.NaicsCode
    business_description: f.LongText | None = None
    formation_state: f.FormationState
    formation_date: f.PastDate
    ein: f.Ein
    phone: f.Phone
    email: f.Email
    website: f.WebUrl | None = None
    business_address: Address
    mailing_address: Address | None = None
    backup_withholding: bool = False
    is_public: bool = False
    government_affiliated: bool = False
    affiliated_entities: f.Text | None = None
    operations_abroad: bool = False
    international_customers_served: bool = False


class PersonFields(Model):
    """What can be said of a person at onboarding and later."""

    first_name: f.Text
    middle_name: f.Text | None = None
    last_name: f.Text
    date_of_birth: f.BirthDate
    home_address: Address
    tin: f.Tin
    email: f.Email
    phone: f.Phone
    employer_name: f.Text | None = None
    occupation: f.Text | None = None
    ownership_percentage: f.Percentage = Decimal(0)
    work_title: f.Text | None = None
    controller: bool = False


class Person(PersonFields):
    """A person at onboarding; a supplied `id` becomes the person's id."""

    id: f.Uuid | None = None
    phone_mobile: f.Phone | None = None
    gender: f.Text | None = None
    created_at: f.UtcDateTime | None = None


class PersonUpdateFields(PersonFields):
    employment_status: EmploymentStatus | None = None


class ExternalBankAccount(Model):
    bank_name: f.Text
    name_on_account: f.Text
    routing_number: f.RoutingNumber
    account_number: f.ExternalAccountNumber
    address_on_account: Address


def broken_person_rules(persons: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with a business's persons as a whole (interface §5): sentences, empty when nothing is."""
    broken = []
    if not any(person.get("controller") is True for person in persons):
        broken.append("at least one person must be a controller")
    shares = [person.get("ownership_percentage") for person in persons]
    if sum(Decimal(s) for s in shares if isinstance(s, int | Decimal)) > 100:
        broken.append("the ownership percentages add up to more than 100")
    supplied = [str(person["id"]).lower() for person in persons if person.get("id")]
    if len(supplied) != len(set(supplied)):
        broken.append("two persons have the same id")
    return broken


BusinessUpdate = sparse("BusinessUpdate", Business)
PersonUpdate = sparse("PersonUpdate", PersonUpdateFields)


class OnboardCustomer(Command):
    business: Business
    persons: Annotated[list[Person], Field(min_length=1, max_length=MAX_PERSONS)]
    external_bank_account: ExternalBankAccount

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        persons = values.get("persons")
        if not isinstance(persons, list):
            return []
        members = [person for person in persons if isinstance(person, dict)]
        return [(("persons",), rule) for rule in broken_person_rules(members)]


class UpdateBusiness(Command):
    customer_id: str
    business: BusinessUpdate  # type: ignore[valid-type]


class UpdatePerson(PersonUpdate, Command):  # type: ignore[valid-type,misc]
    person_id: str


class AddExternalBankAccount(Command):
    external_bank_account_id: str
    external_bank_account: ExternalBankAccount


class ListCustomers(Command):
    page: f.Page = 1
    limit: f.Limit = 50
    status: Annotated[CustomerStatus, Field(strict=False)] | None = None


class GetCustomer(Command):
    customer_id: str
