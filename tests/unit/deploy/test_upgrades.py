"""A stack that was first started by a release without some of today's services."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local.services import ROLES, SERVICES, stack_settings
from deploy.local.state import LocalState, Remembered

ROOT = Path(__file__).resolve().parents[3]
NEW = "reconciliation"
NEW_PASSWORD = "BANKSIDE_RECONCILIATION_DATABASE_PASSWORD"


@pytest.fixture
def earlier(tmp_path: Path) -> Remembered:
    """What a release without the service remembered."""
    state = LocalState(tmp_path)
    first = Remembered.new()
    known = {r: pw for r, pw in first.secrets.role_passwords.items() if r != NEW}
    ports = {name: port for name, port in first.ports.items() if name != NEW}
    state.remember(Remembered(first.name, replace(first.secrets, role_passwords=known), ports))
    remembered = state.remembered()
    assert remembered is not None
    return remembered


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


def test_a_role_that_is_new_gets_a_password_and_the_others_keep_theirs(earlier: Remembered) -> None:
    after = earlier.completed()

    passwords = after.secrets.role_passwords
    assert passwords.keys() == ROLES.keys()
    assert len(passwords[NEW]) >= 16
    assert {**earlier.secrets.role_passwords, NEW: passwords[NEW]} == passwords
    assert replace(after.secrets, role_passwords={}) == replace(earlier.secrets, role_passwords={})
    assert NEW_PASSWORD in after.secrets.schema_passwords()


def test_every_service_of_a_completed_stack_has_its_settings(earlier: Remembered) -> None:
    after = earlier.completed()

    settings = stack_settings(
        secrets=after.secrets,
        database_urls=after.secrets.role_passwords,
        amqp_url="amqp://broker",
        public_ports={service.name: 1 for service in SERVICES},
        admin_ports=after.ports,
    )

    assert settings["BANKSIDE_RECONCILIATION_DATABASE_URL"]


def test_a_stack_that_lacks_nothing_keeps_its_secrets() -> None:
    remembered = Remembered.new()

    completed = remembered.completed()

    assert completed.secrets == remembered.secrets


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


def test_make_env_leaves_a_complete_file_as_it_is(checkout: Path) -> None:
    make_env(checkout)
    file = checkout / ".env"
    before = file.read_bytes(), file.stat().st_ino

    make_env(checkout)

    assert (file.read_bytes(), file.stat().st_ino) == before
    assert [path.name for path in checkout.iterdir() if path.name.startswith(".env")] == [".env"]
