"""A stack that was first started by a release without some of today's services."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from deploy.local.services import (
    FINDING,
    KEEPING,
    LOGINS,
    ROLES,
    SERVICES,
    SHARING,
    STORING,
    migration_settings,
    settings_of,
    stack_settings,
    tokens_at_sandbox,
)
from deploy.local.state import LocalState, Remembered
from libs.messaging.senders import PARTICIPANTS
from libs.persistence.sealing import Keyring, LookupKeys

NEW = "reconciliation"
NEW_ROLES = ("reconciliation", "reconciliation_owner")
NEW_PASSWORD = "BANKSIDE_RECONCILIATION_DATABASE_PASSWORD"

Stored = dict[str, Any]


@pytest.fixture
def earlier() -> Stored:
    """What a release without the service remembered."""
    first = Remembered.new()
    stored = json.loads(json.dumps(asdict(first)))
    for role in NEW_ROLES:
        del stored["secrets"]["role_passwords"][role]
    del stored["secrets"]["provider_tokens"][NEW]
    del stored["secrets"]["link_key"], stored["ports"][NEW], stored["secrets"]["amqp_passwords"]
    del stored["secrets"]["console_key"], stored["secrets"]["console_secret"]
    stored["secrets"]["provider_token"] = "one for all of them"
    return dict(stored)


@pytest.fixture
def upgraded(earlier: Stored, tmp_path: Path) -> Remembered:
    """What this release makes of it."""
    (tmp_path / "stack.json").write_text(json.dumps(earlier))
    remembered = LocalState(tmp_path).remembered()
    assert remembered is not None
    return remembered.with_usable_ports()


def test_secrets_that_are_new_are_made_and_the_others_stay(
    earlier: Stored, upgraded: Remembered
) -> None:
    now = upgraded.secrets.to_json()

    tokens, link_key = now["provider_tokens"].pop(NEW), now.pop("link_key")
    passwords = [now["role_passwords"].pop(role) for role in NEW_ROLES]
    logins = now.pop("amqp_passwords")
    del earlier["secrets"]["provider_token"]
    assert now.pop("console_key").startswith("sub_")
    assert len(now.pop("console_secret")) == 48
    assert now == earlier["secrets"]
    assert tokens.keys() == {"identity", "core", "financial"}
    assert all(
        len(secret) >= 16 for secret in (*passwords, *tokens.values(), *logins.values(), link_key)
    )
    assert upgraded.secrets.role_passwords.keys() == LOGINS.keys()
    assert logins.keys() == {*PARTICIPANTS}
    assert NEW_PASSWORD in upgraded.secrets.schema_passwords()


def test_rings_of_its_own_open_what_the_one_ring_of_an_earlier_release_sealed(
    tmp_path: Path,
) -> None:
    key = base64.b64encode(bytes(32)).decode()
    stored = json.loads(json.dumps(asdict(Remembered.new())))
    for name in ("storage_keys", "shared_keys", "lookup_keys"):
        del stored["secrets"][name]
    stored["secrets"] |= {"sealing_keys": f"k1:{key}", "lookup_key": key}
    (tmp_path / "stack.json").write_text(json.dumps(stored))
    sealed = Keyring(f"k1:{key}").seal("text", "row#field")

    upgraded = LocalState(tmp_path).remembered()

    assert upgraded is not None
    shared = upgraded.secrets.shared_keys
    rings = [*upgraded.secrets.storage_keys.values(), *shared.values()]
    opening = [*upgraded.secrets.storage_keys.values(), *(shared[pair] for pair in KEEPING)]
    assert {Keyring(ring).open(sealed, "row#field") for ring in opening} == {"text"}
    assert not [ring for ring in rings if ring not in opening and f"k1:{key}" in ring]
    assert not any(Keyring(ring).is_current(sealed) for ring in rings)
    assert len(set(rings)) == len(STORING) + len(SHARING)
    digest = LookupKeys(key).digests("ein", "1")[0]
    lookups = [
        LookupKeys(ring).digests("ein", "1") for ring in upgraded.secrets.lookup_keys.values()
    ]
    assert [old for _, old in lookups] == [digest] * len(FINDING)


def test_every_service_of_an_upgraded_stack_has_its_settings(upgraded: Remembered) -> None:
    settings = stack_settings(
        secrets=upgraded.secrets,
        database_urls=upgraded.secrets.role_passwords,
        amqp_url="amqp://broker",
        amqp_urls=upgraded.secrets.amqp_passwords,
        public_ports={service.name: 1 for service in SERVICES},
        operator_port=1,
        admin_ports=upgraded.ports,
    )

    assert settings["BANKSIDE_RECONCILIATION_DATABASE_URL"]
    assert settings["BANKSIDE_RECONCILIATION_CORE_TOKEN"]
    owners = {name for name in settings if name.endswith("_OWNER_DATABASE_URL")}
    assert migration_settings(settings).keys() == owners
    assert len(owners) == len(ROLES)
    assert not any(owners & settings_of(service, settings).keys() for service in SERVICES)
    assert settings["BANKSIDE_RECONCILIATION_AMQP_URL"]
    for what in ("KEY", "SECRET"):
        of_console = settings[f"BANKSIDE_CONSOLE_OPERATOR_{what}"]
        assert settings[f"BANKSIDE_GATEWAY_CONSOLE_{what}"] == of_console


def test_migrations_connect_by_the_ca_that_was_set() -> None:
    of_database = {
        "BANKSIDE_DATABASE_CA_FILE": "all.pem",
        "BANKSIDE_PAYMENTS_DATABASE_CA_FILE": "p.pem",
    }
    owner = {"BANKSIDE_PAYMENTS_OWNER_DATABASE_URL_FILE": "url"}
    others = {"BANKSIDE_AMQP_CA_FILE": "a.pem", "BANKSIDE_PAYMENTS_DATABASE_URL": "postgresql://p"}

    assert migration_settings(of_database | owner | others) == of_database | owner


def test_a_token_that_is_chosen_for_a_service_is_known_to_the_sandbox() -> None:
    token, file = "BANKSIDE_PAYMENTS_CORE_TOKEN", "BANKSIDE_LEDGER_READ_FINANCIAL_TOKEN_FILE"
    elsewhere = {
        "BANKSIDE_IDENTITY_URL": "https://identity.example.com",
        "BANKSIDE_ONBOARDING_IDENTITY_TOKEN": "a real provider's",
    }

    known = tokens_at_sandbox({token: "chosen", file: "/run/token", **elsewhere})

    assert known == {
        "BANKSIDE_SANDBOX_PAYMENTS_CORE_TOKEN": "chosen",
        "BANKSIDE_SANDBOX_LEDGER_READ_FINANCIAL_TOKEN_FILE": "/run/token",
    }


def test_a_service_is_told_its_own_login_to_the_broker_alone(upgraded: Remembered) -> None:
    settings = stack_settings(
        secrets=upgraded.secrets,
        database_urls=upgraded.secrets.role_passwords,
        amqp_url="amqp://administrator",
        amqp_urls=upgraded.secrets.amqp_passwords,
        public_ports={service.name: 1 for service in SERVICES},
        operator_port=1,
        admin_ports=upgraded.ports,
    )

    for service in SERVICES:
        told = settings_of(service, settings)
        logins = {name: value for name, value in told.items() if "AMQP" in name}
        own = {
            f"BANKSIDE_{service.prefix}_AMQP_URL": upgraded.secrets.amqp_passwords.get(service.name)
        }
        assert logins == {name: value for name, value in own.items() if value}
        assert "amqp://administrator" not in told.values()


def test_a_stack_that_lacks_nothing_keeps_its_secrets(tmp_path: Path) -> None:
    remembered = Remembered.new()
    state = LocalState(tmp_path)

    state.remember(remembered)

    assert state.remembered() == remembered
