"""`make up` with a broker that runs elsewhere, named by its administrator's URL."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local.stack import runs_own_rabbitmq
from deploy.local.state import LocalState, Remembered
from deploy.local.up import all_settings, check_elsewhere
from libs.client.errors import OperatorError
from libs.messaging.senders import PARTICIPANTS
from libs.messaging.topology import EXCHANGES
from tests.support.infrastructure import Environment


def test_a_broker_that_lacks_the_users_gets_their_definitions_written(
    environment: Environment, tmp_path: Path
) -> None:
    state, remembered = LocalState(tmp_path), Remembered.new()

    with pytest.raises(OperatorError) as raised:
        check_elsewhere(state, remembered, environment.amqp_url)

    written = json.loads(state.broker_definitions.read_text())
    vhost = environment.amqp_url.rpartition("/")[2]
    assert str(state.broker_definitions) in str(raised.value)
    assert state.broker_definitions.stat().st_mode & 0o777 == 0o600
    passwords = {user["name"]: user["password"] for user in written["users"]}
    assert passwords == remembered.secrets.amqp_passwords
    assert passwords.keys() == {*PARTICIPANTS}
    assert {(one["vhost"], one["name"]) for one in written["exchanges"]} == {
        (vhost, name) for name in EXCHANGES
    }
    assert state.remembered() == remembered  # what is imported stays true


def test_a_broker_that_has_them_will_do(environment: Environment, tmp_path: Path) -> None:
    remembered = replace(Remembered.new(), secrets=environment.secrets)

    check_elsewhere(LocalState(tmp_path), remembered, environment.amqp_url)


def test_a_broker_whose_url_is_in_a_file_is_the_stacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "amqp://me:hidden@broker.example:5672/x"
    (tmp_path / "url").write_text(f"{url}\n")
    checked: list[str] = []
    monkeypatch.setattr("deploy.local.up.check_elsewhere", lambda *given: checked.append(given[2]))
    chosen, remembered = {"BANKSIDE_AMQP_URL_FILE": str(tmp_path / "url")}, Remembered.new()

    settings = all_settings(LocalState(tmp_path), remembered, chosen)

    assert checked == [url]
    assert settings["BANKSIDE_GATEWAY_AMQP_URL"].endswith("@broker.example:5672/x")
    assert not runs_own_rabbitmq(remembered, settings)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    chosen = {"BANKSIDE_AMQP_URL_FILE": str(tmp_path / "missing")}

    with pytest.raises(OperatorError, match="BANKSIDE_AMQP_URL_FILE"):
        all_settings(LocalState(tmp_path), Remembered.new(), chosen)


def test_an_empty_url_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    monkeypatch.setattr("deploy.local.up.ensure_rabbitmq", lambda _: server)
    remembered = Remembered.new()

    settings = all_settings(LocalState(tmp_path), remembered, {"BANKSIDE_AMQP_URL": ""})

    assert runs_own_rabbitmq(remembered, settings)
