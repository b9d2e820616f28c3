"""Sparse updates."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.customers import Business, BusinessUpdate, PersonUpdate
from libs.contracts.errors import Invalid
from libs.contracts.model import OF_ANY_RELEASE
from services.onboarding.adapters.increase.parameters import changed_corporation
from services.onboarding.amending import amended_business, amended_person, changes
from services.onboarding.models import PersonDetails

ADDRESS = {
    "street_1": "1 Main St",
    "street_2": "Floor 2",
    "city": "Albany",
    "state": "NY",
    "zip_code": "12207",
}
BUSINESS = Business.model_validate(
    {
        "business_name": "Acme",
        "dba": "Tools",
        "naics_code": "5415",
        "formation_state": "DE",
        "formation_date": "2015-03-01",
        "ein": "12-3456789",
        "phone": "2125550123",
        "email": "office@acme-tools.com",
        "business_address": ADDRESS,
        "mailing_address": {**ADDRESS, "city": "Troy"},
        "is_public": True,
    }
)
PERSON = PersonDetails.model_validate(
    {
        "first_name": "Ada",
        "last_name": "Byron",
        "date_of_birth": "1980-12-10",
        "home_address": ADDRESS,
        "tin": "219-10-9999",
        "email": "ada@acme-tools.com",
        "phone": "2125550124",
        "phone_mobile": "2125550125",
        "ownership_percentage": Decimal("12.50"),
        "controller": True,
    }
)


def business_update(**fields: Any) -> Business:
    return amended_business(BUSINESS, BusinessUpdate.model_validate(fields))


def test_what_is_absent_stays() -> None:
    assert business_update() == BUSINESS
    assert amended_person(PERSON, PersonUpdate.model_validate({})) == PERSON


def test_an_address_is_merged_field_by_field() -> None:
    amended = business_update(business_address={"city": "Utica"})

    assert amended.business_address.city == "Utica"
    assert amended.business_address.street_2 == "Floor 2"


def test_null_takes_an_optional_field_back_to_its_default() -> None:
    amended = business_update(dba=None, is_public=None, business_address={"street_2": None})

    assert amended.dba is None
    assert amended.is_public is False
    assert amended.business_address.street_2 is None


def test_a_mailing_address_taken_back_is_the_business_address() -> None:
    amended = business_update(mailing_address=None, business_address={"city": "Utica"})

    assert amended.mailing_address == amended.business_address
    assert amended.business_address.city == "Utica"


def test_normal_forms_hold_for_the_merged_whole() -> None:
    amended = business_update(business_address={"state": "nj", "zip_code": "07030"})

    assert amended.business_address.state == "NJ"


def test_what_is_wrong_is_told_where_the_caller_sent_it_and_without_what_is_sensitive() -> None:
    with pytest.raises(Invalid) as caught:
        business_update(business_address={"zip_code": "K1A"})

    (error,) = caught.value.errors
    assert error["loc"] == ["body", "business", "business_address", "zip_code"]
    assert error["input"] == "K1A"


def test_a_person_keeps_what_only_onboarding_can_say() -> None:
    amended = amended_person(PERSON, PersonUpdate.model_validate({"last_name": "Lovelace"}))

    assert (amended.last_name, amended.phone_mobile) == ("Lovelace", "+12125550125")


def test_a_customer_with_text_of_an_earlier_release_is_updated_and_told_to_the_bank() -> None:
    old = {"business_name": "Acme\u202e", "business_address": {**ADDRESS, "city": "\u200b"}}
    stored = Business.model_validate(BUSINESS.model_dump() | old, context={OF_ANY_RELEASE: True})
    update = BusinessUpdate.model_validate({"business_address": {"street_1": "2 Main St"}})

    amended = amended_business(stored, update)
    told = changed_corporation(changes(stored, amended)[0])

    assert (amended.business_name, amended.business_address.city) == ("Acme\u202e", "\u200b")
    assert (told["address"]["line1"], told["address"]["city"]) == ("2 Main St", "\u200b")


def test_changes_hold_the_new_values_and_how_to_restore_the_old_ones() -> None:
    amended = business_update(dba=None, business_address={"street_2": None})

    new, old = changes(BUSINESS, amended)

    assert new["dba"] is None
    assert old["dba"] == "Tools"
    assert (new["business_address"]["street_2"], old["business_address"]["street_2"]) == (
        None,
        "Floor 2",
    )
    assert set(new) == set(old) == {"dba", "business_address"}


def test_numbers_that_are_equal_are_no_change() -> None:
    amended = amended_person(
        PERSON, PersonUpdate.model_validate({"ownership_percentage": Decimal("12.5")})
    )

    assert changes(PERSON, amended) == ({}, {})
    assert amended == PERSON
