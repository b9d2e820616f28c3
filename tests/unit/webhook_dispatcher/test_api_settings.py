"""What an operator may set for the dispatcher, and what keeps it from starting."""

from __future__ import annotations

import pytest

from deploy.local.services import SERVICES
from libs.handling import commands
from libs.runtime.process import Misconfigured
from services.webhook_dispatcher.app import callback_policy_of
from services.webhook_dispatcher.engine import run
from services.webhook_dispatcher.engine.rules import POST_SECONDS, RETRY_SECONDS
from services.webhook_dispatcher.settings import Settings
from tests.unit.persistence.keys import a_key

FOUR_WEEKS = ",".join(["604800"] * 4)
"""Pauses of a schedule that may last 34 days, as each is varied by a fifth."""


@pytest.fixture(autouse=True)
def _needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_DATABASE_URL", "postgresql://h/d")
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_AMQP_URL", "amqp://webhook_dispatcher@h")
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_STORAGE_KEYS", f"k1:{a_key()}")
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_GATEWAY_KEYS", f"k1:{a_key()}")


def test_by_default_nothing_is_allowed_that_is_not_public_and_the_schedule_is_the_interfaces() -> (
    None
):
    settings = Settings.load()

    assert callback_policy_of(settings)
    assert settings.callback_allow == ""
    assert settings.retry_seconds == RETRY_SECONDS


@pytest.mark.parametrize("setting", ["127.0.0.1", "10.0.0.0/99", "host:port"])
def test_an_allowance_that_cannot_be_read_says_so(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("BANKSIDE_CALLBACK_ALLOW", setting)

    with pytest.raises(Misconfigured, match="BANKSIDE_CALLBACK_ALLOW"):
        callback_policy_of(Settings.load())


def test_a_schedule_is_pauses_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETRY_SECONDS", "1, 2.5,60")

    assert Settings.load().retry_seconds == (1.0, 2.5, 60.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RETRY_SECONDS", ""),
        ("RETRY_SECONDS", "soon"),
        ("RETRY_SECONDS", "-1"),
        ("DELIVERY_LEASE_SECONDS", "15"),
        ("SECRET_OVERLAP_HOURS", "169"),
        ("RETENTION_DAYS", "29"),
    ],
)
def test_what_cannot_work_ends_the_start_with_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(f"BANKSIDE_WEBHOOK_DISPATCHER_{name}", value)

    with pytest.raises(SystemExit):
        Settings.load()

    assert f"BANKSIDE_WEBHOOK_DISPATCHER_{name}" in capsys.readouterr().err


def test_a_retention_shorter_than_the_retry_schedule_ends_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETRY_SECONDS", FOUR_WEEKS)
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS", "33")

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    assert ended.value.code == 78
    told = capsys.readouterr().err
    assert told.startswith("webhook_dispatcher: set BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS")
    assert "BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS has to be at least 34" in told
    assert told.count("\n") == 1


def test_a_retry_schedule_longer_than_the_retention_ends_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETRY_SECONDS", FOUR_WEEKS)

    with pytest.raises(SystemExit) as ended:
        Settings.load()

    assert ended.value.code == 78
    told = capsys.readouterr().err
    assert "BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS has to be at least 34" in told


def test_the_shortest_retention_that_the_schedule_allows_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETRY_SECONDS", FOUR_WEEKS)
    monkeypatch.setenv("BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS", "34")

    assert Settings.load().retention_days == 34


def test_a_post_may_take_its_whole_time_when_the_process_stops() -> None:
    settings = Settings.load()
    [service] = [service for service in SERVICES if service.name == Settings.service]

    assert run.DRAIN_SECONDS > POST_SECONDS
    before_and_after = 2 * commands.STOP_SECONDS + run.STOP_SECONDS
    assert settings.shutdown_seconds > run.DRAIN_SECONDS + before_and_after
    assert service.stop_seconds > settings.shutdown_seconds
