"""Sealed storage."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from libs.contracts.customers import Business
from libs.persistence.sealing import CannotOpen, Keyring, LookupKeys
from services.onboarding.models import PersonDetails
from services.onboarding.repository.vault import Vault
from tests.unit.onboarding.test_amending import BUSINESS, PERSON

KEY = base64.b64encode(bytes(32)).decode()
VAULT = Vault(Keyring(f"k1:{KEY}"), LookupKeys(f"k1:{KEY}"))


def test_what_is_sealed_opens_to_the_same() -> None:
    text = VAULT.seal(PERSON, "persons/1")

    assert VAULT.open(PersonDetails, text, "persons/1") == PERSON
    assert VAULT.open(Business, VAULT.seal(BUSINESS, "customers/1"), "customers/1") == BUSINESS
    opened = VAULT.open(PersonDetails, text, "persons/1")
    assert opened.ownership_percentage.as_tuple() == Decimal("12.50").as_tuple()


def test_an_instant_and_a_choice_open_to_the_same() -> None:
    person = PERSON.model_copy(
        update={
            "created_at": datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            "employment_status": "retired",
        }
    )

    opened = VAULT.open(PersonDetails, VAULT.seal(person, "persons/1"), "persons/1")

    assert opened == person


def test_what_the_rules_of_input_refuse_by_now_still_opens() -> None:
    broken = BUSINESS.model_copy(update={"ein": "1", "email": "none", "formation_state": "Nowhere"})

    opened = VAULT.open(Business, VAULT.seal(broken, "customers/1"), "customers/1")

    assert opened == broken


def test_a_field_that_was_not_there_yet_has_its_default() -> None:
    text = VAULT.seal(PERSON, "persons/1").replace('"controller":true', '"unknown":1')

    assert VAULT.open(PersonDetails, text, "persons/1").controller is False


def test_sensitive_fields_are_not_in_the_text() -> None:
    assert "219109999" not in VAULT.seal(PERSON, "persons/1")
    assert "1980-12-10" not in VAULT.seal(PERSON, "persons/1")
    assert "123456789" not in VAULT.seal(BUSINESS, "customers/1")


def test_what_is_sealed_opens_nowhere_else() -> None:
    text = VAULT.seal(PERSON, "persons/1")

    with pytest.raises(CannotOpen):
        VAULT.open(PersonDetails, text, "persons/2")
