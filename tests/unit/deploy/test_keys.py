"""`make up` makes keys at the stack of its checkout, with settings that are those of that stack alone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.local.keys import ensure_keys
from deploy.local.state import LocalState
from deploy.local.up import chosen_settings

REMOTE = {
    "BANKSIDE_BASE_URL": "https://remote.example",
    "BANKSIDE_SUBSCRIPTION_KEY": "sub_remote",
    "BANKSIDE_SECRET": "of-the-remote-partner",
    "BANKSIDE_OPERATOR_URL": "https://operators.remote.example",
    "BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": "sub_remote_admin",
    "BANKSIDE_OPERATOR_SECRET": "of-the-remote-admin",
    "BANKSIDE_OPERATOR_SECRET_FILE": "/remote/secret",
    "BANKSIDE_OPERATOR_SECRET_COMMAND": "remote-secret",
}
OWN = {
    "BANKSIDE_GATEWAY_PORT": "8080",
    "BANKSIDE_GATEWAY_OPERATOR_PORT": "8081",
    "BANKSIDE_CONSOLE_PORT": "8082",
    "BANKSIDE_SANDBOX_PORT": "8090",
}


def test_the_stack_is_not_given_what_the_command_line_is_told() -> None:
    assert chosen_settings({**REMOTE, **OWN, "PATH": "/bin"}) == OWN


def test_keys_are_made_at_the_stack_of_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environments: list[dict[str, str]] = []

    def run(
        command: list[str], *, env: dict[str, str], **_: Any
    ) -> subprocess.CompletedProcess[str]:
        environments.append(env)
        made = {"subscription_key": "sub_local", "secret": "local"}
        return subprocess.CompletedProcess(command, 0, json.dumps(made), "")

    for name, value in REMOTE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("deploy.local.keys.subprocess.run", run)
    state = LocalState(tmp_path)
    state.write_environment({**OWN, **REMOTE})  # as earlier releases did

    ensure_keys(state)

    assert len(environments) == 2
    for environment in environments:
        assert not environment.keys() & REMOTE.keys()
        assert environment.items() >= OWN.items()


def test_the_addresses_are_those_at_which_the_stack_listens(tmp_path: Path) -> None:
    keys = {"subscription_key": "sub_local", "secret": "local"}
    state = LocalState(tmp_path)
    state.write_private(state.credentials, json.dumps({"operator": keys, "partner": keys}))
    hosts = {"GATEWAY": "0.0.0.0", "GATEWAY_OPERATOR": "10.1.2.3", "CONSOLE": "::1"}
    state.write_environment(OWN | {f"BANKSIDE_{name}_HOST": host for name, host in hosts.items()})

    ensure_keys(state)

    known = state.read_json(state.credentials)
    assert known["base_url"] == "http://127.0.0.1:8080"
    assert known["operator_url"] == "http://10.1.2.3:8081"
    assert known["console_url"] == "http://[::1]:8082"
    assert known["sandbox_url"] == "http://127.0.0.1:8090"
