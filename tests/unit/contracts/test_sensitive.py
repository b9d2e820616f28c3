"""Sensitive fields are found at any depth, sealed whole, and shown by no repr."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from libs.contracts.accounts import ExternalAccount
from libs.contracts.customers import OnboardCustomer, UpdateBusiness, UpdatePerson
from libs.contracts.exact_json import decode, encode
from libs.contracts.model import Command
from libs.contracts.sensitive import SensitiveShape, open_payload, seal_payload
from libs.contracts.statements import StatementFormat
from libs.persistence.sealing import CannotOpen
from tests.support import people
from tests.unit.persistence.keys import a_keyring

SECRETS = ("881234567", "123456780", "1980-12-10", "7000111122223333")


def an_application() -> OnboardCustomer:
    return OnboardCustomer.model_validate(
        people.application(
            business=people.business(ein=SECRETS[0]),
            persons=[people.person(tin=SECRETS[1], date_of_birth=SECRETS[2])],
            external_bank_account=people.bank_account(account_number=SECRETS[3]),
        )
    )


COMMANDS = [
    an_application(),
    UpdateBusiness.model_validate({"customer_id": "c", "business": {"ein": SECRETS[0]}}),
    UpdatePerson.model_validate({"person_id": "p", "tin": SECRETS[1], "date_of_birth": SECRETS[2]}),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: type(c).__name__)
def test_a_sealed_command_shows_nothing_sensitive_and_opens_to_what_it_was(
    command: Command,
) -> None:
    keyring, shape = a_keyring(), SensitiveShape.of(type(command))

    sealed = encode(seal_payload(shape, command.model_dump(exclude_unset=True), keyring, "context"))
    opened = open_payload(shape, decode(sealed), keyring, "context")

    assert not any(secret in sealed.decode() for secret in SECRETS)
    assert type(command).model_validate(opened) == command


def test_a_sealed_payload_opens_in_no_other_context() -> None:
    keyring, shape = a_keyring(), SensitiveShape.of(OnboardCustomer)
    sealed = seal_payload(shape, an_application().model_dump(), keyring, "one command")

    with pytest.raises(CannotOpen):
        open_payload(shape, sealed, keyring, "another command")


def test_what_is_sealed_is_a_copy() -> None:
    payload = {"external_account_number": SECRETS[3]}

    seal_payload(SensitiveShape.of(ExternalAccount), payload, a_keyring(), "context")

    assert payload == {"external_account_number": SECRETS[3]}


def test_a_list_of_sensitive_resources_is_sealed_item_by_item() -> None:
    keyring, shape = a_keyring(), SensitiveShape.of(list[ExternalAccount])
    payload = [{"external_account_number": SECRETS[3]}, {"external_account_number": None}]

    sealed = seal_payload(shape, payload, keyring, "context")

    assert SECRETS[3] not in json.dumps(sealed)
    assert sealed[1] == {"external_account_number": None}
    assert open_payload(shape, sealed, keyring, "context") == payload


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: type(c).__name__)
def test_no_repr_of_a_command_shows_what_is_sensitive(command: Command) -> None:
    shown = f"{command!r} {command}"

    assert not any(secret in shown for secret in (*SECRETS, "datetime.date(1980"))


def test_no_repr_of_a_statement_shows_the_link_that_opens_it_without_credentials() -> None:
    document = StatementFormat(
        format="pdf", url="https://bank.example/f/secret", url_expires_at=datetime.now(UTC)
    )

    assert "secret" not in f"{document!r} {document}"
