"""`make up` with a broker that runs elsewhere, named by its administrator's URL."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.local.state import LocalState, Remembered
from deploy.local.up import check_elsewhere
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
