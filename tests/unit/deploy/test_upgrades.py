"""A stack that was first started by a release without some of today's services."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from deploy.local.services import (
    FINDING,
    LOGINS,
    SERVICES,
    SHARING,
    STORING,
    migration_settings,
    settings_of,
    stack_settings,
)
from deploy.local.state import LocalState, Remembered
from libs.messaging.senders import PARTICIPANTS
from libs.persistence.sealing import Keyring, LookupKeys

ROOT = Path(__file__).resolve().parents[3]
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
    stored["secrets"]["provider_token"] = "one for all of them"
    return dict(stored)


@pytest.fixture
def upgraded(earlier: Stored, tmp_path: Path) -> Remembered:
    """What this release makes of it."""
    (tmp_path / "stack.json").write_text(json.dumps(earlier))
    remembered = LocalState(tmp_path).remembered()
    assert remembered is not None
    return remembered.with_usable_ports()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    script = tmp_path / "deploy" / "docker" / "make-env"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "docker" / "make-env", script)
    return tmp_path


def make_env(checkout: Path) -> str:
    script = checkout / "deploy" / "docker" / "make-env"
    command = ["/bin/sh", str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_secrets_that_are_new_are_made_and_the_others_stay(
    earlier: Stored, upgraded: Remembered
) -> None:
    now = upgraded.secrets.to_json()

    tokens, link_key = now["provider_tokens"].pop(NEW), now.pop("link_key")
    passwords = [now["role_passwords"].pop(role) for role in NEW_ROLES]
    logins = now.pop("amqp_passwords")
    del earlier["secrets"]["provider_token"]
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
    rings = [*upgraded.secrets.storage_keys.values(), *upgraded.secrets.shared_keys.values()]
    assert {Keyring(ring).open(sealed, "row#field") for ring in rings} == {"text"}
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
        admin_ports=upgraded.ports,
    )

    assert settings["BANKSIDE_RECONCILIATION_DATABASE_URL"]
    assert settings["BANKSIDE_RECONCILIATION_CORE_TOKEN"]
    owners = {name for name in settings if name.endswith("_OWNER_DATABASE_URL")}
    assert migration_settings(settings).keys() == owners
    assert len(owners) == len(SERVICES)
    assert not any(owners & settings_of(service, settings).keys() for service in SERVICES)
    assert settings["BANKSIDE_RECONCILIATION_AMQP_URL"]


def test_a_service_is_told_its_own_login_to_the_broker_alone(upgraded: Remembered) -> None:
    settings = stack_settings(
        secrets=upgraded.secrets,
        database_urls=upgraded.secrets.role_passwords,
        amqp_url="amqp://administrator",
        amqp_urls=upgraded.secrets.amqp_passwords,
        public_ports={service.name: 1 for service in SERVICES},
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


def test_make_env_writes_every_secret_that_the_containers_need(checkout: Path) -> None:
    needed = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()))

    make_env(checkout)

    written = (checkout / ".env").read_text().splitlines()
    assert needed == {line.partition("=")[0] for line in written}
    assert all(len(line.partition("=")[2]) >= 32 for line in written)
    assert (checkout / ".env").stat().st_mode & 0o777 == 0o600


def test_make_env_appends_the_names_that_an_existing_file_lacks(checkout: Path) -> None:
    make_env(checkout)
    file = checkout / ".env"
    complete = file.read_text().splitlines()
    earlier = [line for line in complete if not line.startswith(NEW_PASSWORD)]
    file.write_text("\n".join(earlier))  # without a line break at its end

    said = make_env(checkout)

    *kept, appended = file.read_text().splitlines()
    assert NEW_PASSWORD in said
    assert kept == earlier
    assert re.fullmatch(rf"{NEW_PASSWORD}=[0-9a-f]{{32}}", appended)


def test_make_env_puts_the_one_ring_of_an_earlier_release_behind_the_new_keys(
    checkout: Path,
) -> None:
    key = base64.b64encode(bytes(32)).decode()
    file = checkout / ".env"
    file.write_text(f"BANKSIDE_SEALING_KEYS=k1:{key}\nBANKSIDE_LOOKUP_KEY={key}\n")

    make_env(checkout)

    written = dict(line.split("=", 1) for line in file.read_text().splitlines())
    lookups = [ring for name, ring in written.items() if name.endswith("_LOOKUP_KEYS")]
    rings = [
        ring for name, ring in written.items() if name.endswith("_KEYS") and ring not in lookups
    ]
    sealed = Keyring(f"k1:{key}").seal("text", "row#field")
    assert {Keyring(ring).open(sealed, "row#field") for ring in rings} == {"text"}
    assert len(set(rings)) == 1 + len(STORING) + len(SHARING)
    assert [LookupKeys(ring).key_ids[1:] for ring in lookups] == [("",)] * len(FINDING)


def test_make_env_leaves_a_complete_file_as_it_is(checkout: Path) -> None:
    make_env(checkout)
    file = checkout / ".env"
    before = file.read_bytes(), file.stat().st_ino

    make_env(checkout)

    assert (file.read_bytes(), file.stat().st_ino) == before
    assert [path.name for path in checkout.iterdir() if path.name.startswith(".env")] == [".env"]
