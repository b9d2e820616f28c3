"""Where keys are kept, and which one a request is signed with."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from libs.client.credentials import Credentials, file_with, local_folder, look_up, save
from libs.client.errors import OperatorError
from libs.client.settings import (
    bank_url,
    base_url,
    load_stack_environment,
    require_own_stack,
)
from libs.secret_sources import read_secret

DEMO = Credentials("sub_demo", "demo-secret")
OTHER = Credentials("sub_other", "other-secret")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without a stack, in a folder of which we are."""
    names = ("BASE_URL", "SANDBOX_URL", "ONBOARDING_AMQP_URL", "SUBSCRIPTION_KEY", "SECRET")
    for name in (*names, "OPERATOR_URL"):
        monkeypatch.delenv(f"BANKSIDE_{name}", raising=False)
    below = tmp_path / "libs" / "client"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return tmp_path


@pytest.fixture
def local(checkout: Path) -> Path:
    """The `.local` of a running stack."""
    folder = checkout / ".local"
    folder.mkdir()
    content = {
        "base_url": "http://127.0.0.1:8080/",
        "sandbox_url": "http://127.0.0.1:8090",
        "partner": {"subscription_key": DEMO.subscription_key, "secret": DEMO.secret},
    }
    (folder / "credentials.json").write_text(json.dumps(content))
    return folder


def test_the_folder_of_the_stack_is_found_upward(local: Path) -> None:
    assert local_folder() == local


def test_the_demo_partner_signs_unless_a_key_is_named(local: Path) -> None:
    assert look_up() == DEMO
    assert look_up("partner") == DEMO


def test_a_key_of_the_environment_comes_first(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", OTHER.subscription_key)
    monkeypatch.setenv("BANKSIDE_SECRET", OTHER.secret)

    assert look_up() == OTHER
    assert look_up("partner") == DEMO


def test_a_saved_key_signs_only_where_it_is_named(checkout: Path) -> None:
    (checkout / ".local").mkdir()
    save("zeta", DEMO)
    save("acme", OTHER)

    with pytest.raises(
        OperatorError, match=r"no key to sign with.*--key \(saved keys: acme, zeta\)"
    ):
        look_up()

    assert look_up("acme") == OTHER


@pytest.mark.parametrize("only", ["BANKSIDE_SUBSCRIPTION_KEY", "BANKSIDE_SECRET"])
def test_half_a_key_in_the_environment_is_a_mistake(
    local: Path, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    monkeypatch.setenv(only, "half")

    with pytest.raises(OperatorError, match="both, or neither"):
        look_up()


def test_half_a_key_keeps_no_named_one_from_signing(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("other", OTHER)
    monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", "half")

    assert look_up("other") == OTHER


def test_the_file_that_has_a_key_of_the_stack_is_named(local: Path) -> None:
    assert file_with(DEMO.subscription_key) == local / "credentials.json"
    assert file_with(OTHER.subscription_key) is None


def test_a_saved_key_is_found_by_its_name_and_by_its_subscription_key(local: Path) -> None:
    path = save("other", OTHER)

    assert look_up("other") == look_up("sub_other") == OTHER
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_saving_under_a_name_again_replaces_the_key(local: Path) -> None:
    save("other", DEMO)
    save("other", OTHER)

    assert look_up("other") == OTHER
    assert [path.name for path in (local / "keys").iterdir()] == ["other.json"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "partner", "n" * 65])
def test_a_name_that_is_no_name_is_a_mistake(local: Path, name: str) -> None:
    with pytest.raises(OperatorError):
        save(name, OTHER)


def test_a_key_whose_secret_is_not_known_here_is_a_mistake(local: Path) -> None:
    with pytest.raises(OperatorError, match="sub_unknown"):
        look_up("sub_unknown")


def test_without_a_stack_every_look_up_says_what_to_do(checkout: Path) -> None:
    for look in (look_up, base_url, lambda: bank_url("sandbox")):
        with pytest.raises(OperatorError, match="make up"):
            look()
    with pytest.raises(OperatorError, match=r"no \.local"):
        save("other", OTHER)


@pytest.mark.parametrize("content", ["", "[]", '{"sandbox_url": 1}'])
def test_a_file_that_is_broken_is_a_mistake_that_names_it(local: Path, content: str) -> None:
    (local / "credentials.json").write_text(content)

    with pytest.raises(OperatorError, match=r"credentials\.json"):
        base_url()


def test_the_secret_is_in_no_representation() -> None:
    assert DEMO.secret not in repr(DEMO)


def test_addresses_come_from_the_stack_without_a_trailing_slash(local: Path) -> None:
    assert base_url() == "http://127.0.0.1:8080"
    assert bank_url("sandbox") == "http://127.0.0.1:8090"


def test_the_environment_wins_over_the_settings_of_the_stack(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (local / "stack.env").write_text(
        "BANKSIDE_ONBOARDING_AMQP_URL='amqp://stack:p$w@127.0.0.1:5672/%2F'\nBANKSIDE_PAYMENTS_AMQP_URL='amqp://stack'\nPATH='/nowhere'\n"
    )
    monkeypatch.setenv("BANKSIDE_PAYMENTS_AMQP_URL", "amqp://environment")
    monkeypatch.setenv("BANKSIDE_ONBOARDING_AMQP_URL", "")  # so that it is put back afterwards
    monkeypatch.delenv("BANKSIDE_ONBOARDING_AMQP_URL")
    monkeypatch.setenv("PATH", "/bin")

    load_stack_environment()

    assert read_secret("BANKSIDE_PAYMENTS_AMQP_URL") == "amqp://environment"
    assert read_secret("BANKSIDE_ONBOARDING_AMQP_URL") == "amqp://stack:p$w@127.0.0.1:5672/%2F"


def test_the_settings_of_the_stack_have_no_address_and_no_key_of_the_command_line(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_OPERATOR_SECRET_FILE", "")  # so that it is put back afterwards
    monkeypatch.delenv("BANKSIDE_OPERATOR_SECRET_FILE")
    (local / "stack.env").write_text(
        "BANKSIDE_BASE_URL='https://remote.example'\nBANKSIDE_OPERATOR_SECRET_FILE='/remote'\n"
        "BANKSIDE_SUBSCRIPTION_KEY='sub_remote'\nBANKSIDE_SECRET='remote-secret'\n"
    )

    load_stack_environment()

    assert base_url() == "http://127.0.0.1:8080"
    assert look_up() == DEMO
    assert "BANKSIDE_OPERATOR_SECRET_FILE" not in os.environ


@pytest.mark.parametrize("variable", ["BANKSIDE_BASE_URL", "BANKSIDE_OPERATOR_URL"])
def test_another_gateway_than_that_of_the_stack_is_told_apart(
    local: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    require_own_stack()
    monkeypatch.setenv(variable, "https://remote.example")

    with pytest.raises(OperatorError, match=f"{variable} names another gateway"):
        require_own_stack()


def test_without_a_stack_each_gateway_is_another_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_BASE_URL", "http://127.0.0.1:8080")

    with pytest.raises(OperatorError, match="make up"):
        require_own_stack()


def test_a_file_that_the_environment_names_wins_over_the_settings_of_the_stack(
    local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (local / "stack.env").write_text("BANKSIDE_ONBOARDING_AMQP_URL='amqp://stack'\n")
    (local / "url").write_text("amqp://file\n")
    monkeypatch.setenv("BANKSIDE_ONBOARDING_AMQP_URL_FILE", str(local / "url"))
    monkeypatch.setenv("BANKSIDE_ONBOARDING_AMQP_URL", "")  # so that it is put back afterwards
    monkeypatch.delenv("BANKSIDE_ONBOARDING_AMQP_URL")

    load_stack_environment()

    assert read_secret("BANKSIDE_ONBOARDING_AMQP_URL") == "amqp://file"


@pytest.mark.parametrize("url", ["localhost", "http://", "http://host:99999", "ftp://host"])
def test_an_address_that_is_no_url_is_a_mistake_that_does_not_show_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("BANKSIDE_BASE_URL", url)

    with pytest.raises(OperatorError, match="BANKSIDE_BASE_URL") as raised:
        base_url()

    assert "host" not in str(raised.value)
