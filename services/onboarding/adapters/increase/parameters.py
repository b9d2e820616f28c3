"""Businesses and persons as Increase is told of them.

A person who controls the business, or owns 25 % of it, is a beneficial owner. Increase has no others, and no phone
numbers, mailing addresses, trade names or percentages: these are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from increase.types import beneficial_owner_update_params as owner_update
from increase.types import entity_create_params as create
from increase.types import entity_update_params as update

from libs.contracts.customers import Address, Business, ExternalBankAccount
from libs.contracts.model import OF_ANY_RELEASE
from libs.providers.increase.emails import email_at_increase
from libs.providers.increase.texts import text_at_increase
from services.onboarding.models import PersonDetails
from services.onboarding.ports import Changes

OWNERSHIP = Decimal(25)
NUMBER_SHOWN = 4

Prong = Literal["ownership", "control"]


def corporation(business: Business, persons: Sequence[PersonDetails]) -> create.Corporation:
    told: create.Corporation = {
        "name": text_at_increase(business.business_name),
        "address": address(business.business_address),
        "beneficial_owners": [owner(person) for person in persons if prongs(person)],
        "legal_identifier": _legal_identifier(business.ein),
        "incorporation_state": business.formation_state,
        "industry_code": business.naics_code,
    }
    if (email := email_at_increase(business.email)) is not None:
        told["email"] = email
    if business.website is not None:
        told["website"] = business.website
    return told


def owner(person: PersonDetails) -> create.CorporationBeneficialOwner:
    told: create.CorporationBeneficialOwner = {
        "individual": {
            "name": full_name(person),
            "date_of_birth": person.date_of_birth,
            "address": address(person.home_address),
            "identification": {"method": _method(person.tin), "number": person.tin},
        },
        "prongs": prongs(person),
    }
    if person.work_title is not None:
        told["company_title"] = text_at_increase(person.work_title)
    return told


def changed_corporation(changes: Changes) -> update.Corporation:
    """What Increase is told of a change to a business; empty when it has none of the fields.

    A website that is taken away stays at Increase, which has no way to clear it, and so does the e-mail address before
    one that Increase does not take.
    """
    told: update.Corporation = {}
    for name, value in changes.items():
        match name:
            case "business_name":
                told["name"] = text_at_increase(value)
            case "business_address":
                accepted = Address.model_validate(value, context={OF_ANY_RELEASE: True})
                told["address"] = address(accepted)
            case "ein":
                told["legal_identifier"] = _legal_identifier(value)
            case "email" if (email := email_at_increase(value)) is not None:
                told["email"] = email
            case "formation_state":
                told["incorporation_state"] = value
            case "naics_code":
                told["industry_code"] = value
            case "website" if value is not None:
                told["website"] = value
    return told


def changed_owner(
    changes: Changes, person: PersonDetails
) -> owner_update.BeneficialOwnerUpdateParams:
    """What Increase is told of a change to a beneficial owner; empty when it has none of the fields.

    Args:
        person: as it is to be.
    """
    told: owner_update.BeneficialOwnerUpdateParams = {}
    if changes.keys() & {"first_name", "middle_name", "last_name"}:
        told["name"] = full_name(person)
    if "date_of_birth" in changes:
        told["date_of_birth"] = person.date_of_birth
    if "home_address" in changes:
        told["address"] = address(person.home_address)
    if "tin" in changes:
        told["identification"] = {
            "method": _method(person.tin),
            "number": person.tin,
        }
    if changes.keys() & {"controller", "ownership_percentage"}:
        told["prongs"] = prongs(person)
    return told


def address(given: Address) -> Any:
    """In the one shape that all parameters with an address have."""
    told = {
        "line1": text_at_increase(given.street_1),
        "city": text_at_increase(given.city),
        "country": given.country,
        "state": text_at_increase(given.state),
        "zip": text_at_increase(given.zip_code),
    }
    if given.street_2 is not None:
        told["line2"] = text_at_increase(given.street_2)
    return told


def prongs(person: PersonDetails) -> list[Prong]:
    """Why the person is a beneficial owner; empty: it is none."""
    reasons: list[Prong] = []
    if person.controller:
        reasons.append("control")
    if person.ownership_percentage >= OWNERSHIP:
        reasons.append("ownership")
    return reasons


def full_name(person: PersonDetails) -> str:
    names = person.first_name, person.middle_name, person.last_name
    return text_at_increase(" ".join(filter(None, names)))


def description_of(account: ExternalBankAccount) -> str:
    return text_at_increase(f"{account.bank_name}, {account.name_on_account}")


def last_four(number: str) -> str:
    return number[-NUMBER_SHOWN:]


def _legal_identifier(ein: str) -> Any:
    """Digits only, as a normal EIN is."""
    return {"category": "us_employer_identification_number", "value": ein}


def _method(
    tin: str,
) -> Literal["social_security_number", "individual_taxpayer_identification_number"]:
    """An ITIN begins with 9, which no SSN does."""
    if tin.startswith("9"):
        return "individual_taxpayer_identification_number"
    return "social_security_number"
