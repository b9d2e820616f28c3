"""Settings: one rule for all services, mistakes told in a sentence, and no secret shown."""

from __future__ import annotations

import base64

import pytest

from libs.persistence.sealing import Keyring
from libs.runtime.process import Misconfigured
from services.gateway.settings import Settings

KEY = base64.b64encode(b"k" * 32).decode()
NEEDED = {
    "BANKSIDE_GATEWAY_DATABASE_URL": "postgresql://gateway:canary@localhost/bankside",
    "BANKSIDE_GATEWAY_AMQP_URL": "amqp://gateway:canary@localhost/",
    "BANKSIDE_GATEWAY_STORAGE_KEYS": f"k1:{KEY}",
    "BANKSIDE_GATEWAY_LOOKUP_KEYS": f"k1:{KEY}",
    "BANKSIDE_GATEWAY_ONBOARDING_KEYS": f"k1:{KEY}",
    "BANKSIDE_GATEWAY_LEDGER_READ_KEYS": f"k1:{KEY}",
    "BANKSIDE_GATEWAY_WEBHOOK_DISPATCHER_KEYS": f"k1:{KEY}",
}
NEEDED_KEYS = [name for name in NEEDED if name.endswith("_KEYS")]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)


def test_a_setting_of_the_service_wins_over_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("BANKSIDE_PORT", "1")
    monkeypatch.setenv("BANKSIDE_GATEWAY_PORT", "2")

    settings = Settings.load()

    assert (settings.log_level, settings.port) == ("DEBUG", 2)


def test_mistakes_are_told_in_one_line_that_names_the_settings_and_not_their_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_GATEWAY_PORT", "canary")
    monkeypatch.delenv("BANKSIDE_GATEWAY_AMQP_URL")
    monkeypatch.setenv("BANKSIDE_AMQP_URL", "amqp://gateway:canary@localhost/")

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    told = capsys.readouterr().err
    assert ended.value.code == 78
    assert len(told.splitlines()) == 1
    assert "BANKSIDE_GATEWAY_PORT" in told
    assert "BANKSIDE_GATEWAY_AMQP_URL" in told
    assert "canary" not in told


def test_no_service_takes_the_database_login_of_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_DATABASE_URL", NEEDED["BANKSIDE_GATEWAY_DATABASE_URL"])
    monkeypatch.delenv("BANKSIDE_GATEWAY_DATABASE_URL")

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    assert ended.value.code == 78
    assert capsys.readouterr().err == (
        "gateway: set BANKSIDE_GATEWAY_DATABASE_URL. BANKSIDE_DATABASE_URL is not read any more: each service has a"
        " login of its own.\n"
    )


@pytest.mark.parametrize(
    "url",
    ["traces:4318", "ftp://traces", "http:///v1", "http://a:b@traces", "http://traces:4318x"],
)
def test_what_is_no_collectors_url_is_refused_without_being_shown(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)

    with pytest.raises(SystemExit):
        Settings.load()

    said = capsys.readouterr().err
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in said
    assert url not in said


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway:canary@localhost/",
        "amqp://gateway:canary@localhost:x5672/",
        "amqp://gateway:canary@localhost:99999/",
        "amqp://gateway:canary@localhost:0/",
        "amqp://gateway:canary@:5672/",
        "amqp://gateway:can/ary@localhost/",
        "amqp://gateway:canary@[localhost/",
    ],
)
def test_what_is_no_brokers_url_is_refused_without_being_shown(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_GATEWAY_AMQP_URL", url)

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    said = capsys.readouterr().err
    assert ended.value.code == 78
    assert "BANKSIDE_GATEWAY_AMQP_URL (Value error, it has to be amqp://" in said
    assert "can" not in said.replace("Value", "")


def test_proxies_that_are_no_networks_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_GATEWAY_TRUSTED_PROXIES", "10.0.0.0/8, the proxy")

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    assert ended.value.code == 78
    assert "BANKSIDE_GATEWAY_TRUSTED_PROXIES" in capsys.readouterr().err


def test_no_repr_of_the_settings_shows_a_secret() -> None:
    shown = repr(Settings.load())

    assert "canary" not in shown
    assert KEY not in shown


@pytest.mark.parametrize("name", NEEDED_KEYS)
def test_a_key_that_cannot_be_used_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "canary")
    settings = Settings.load()

    with pytest.raises(Misconfigured, match=name) as mistake:
        settings.ring("storage_keys")
        settings.lookup()
        settings.message_sealer()

    assert "canary" not in str(mistake.value)


def test_the_keys_are_what_was_set() -> None:
    token = Keyring(f"k1:{KEY}").seal("text", "context#field")
    command = "onboarding.onboard_customer/1/command#/ein"
    sealed = Settings.load().message_sealer().seal("text", command)

    assert Settings.load().ring("storage_keys").open(token, "context#field") == "text"
    assert Keyring(f"k1:{KEY}").open(sealed, command) == "text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (
            "BANKSIDE_GATEWAY_DATABASE_URL",
            "postgresql://gateway:canary@localhost/bankside?sslmode=prefer",
        ),
        ("BANKSIDE_GATEWAY_DATABASE_CA_FILE", "/none.pem"),
        ("BANKSIDE_AMQP_CA_FILE", "/none.pem"),
    ],
)
def test_what_tls_cannot_use_is_told_before_anything_is_connected_to(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit):
        Settings.load()

    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert name.rpartition("GATEWAY_")[2].removeprefix("BANKSIDE_") in told
    assert "canary" not in told
