"""Sealed storage."""

from __future__ import annotations

import base64
from decimal import Decimal

import pytest

from libs.persistence.sealing import CannotOpen, Keyring, LookupKey
from services.onboarding.models import PersonDetails
from services.onboarding.repository.vault import Vault
from tests.unit.onboarding.test_amending import BUSINESS, PERSON

KEY = base64.b64encode(bytes(32)).decode()
VAULT = Vault(Keyring(f"k1:{KEY}"), LookupKey(KEY))


def test_what_is_sealed_opens_to_the_same() -> None:
    text = VAULT.seal(PERSON, "persons/1")

    assert VAULT.open(PersonDetails, text, "persons/1") == PERSON
    opened = VAULT.open(PersonDetails, text, "persons/1")
    assert opened.ownership_percentage.as_tuple() == Decimal("12.50").as_tuple()


def test_sensitive_fields_are_not_in_the_text() -> None:
    assert "219109999" not in VAULT.seal(PERSON, "persons/1")
    assert "1980-12-10" not in VAULT.seal(PERSON, "persons/1")
    assert "123456789" not in VAULT.seal(BUSINESS, "customers/1")


def test_what_is_sealed_opens_nowhere_else() -> None:
    text = VAULT.seal(PERSON, "persons/1")

    with pytest.raises(CannotOpen):
        VAULT.open(PersonDetails, text, "persons/2")
