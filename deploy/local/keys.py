"""Keys to begin with: of a demo partner, so that the first request can be signed at once, and of the first operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.local.banks import bank_addresses
from deploy.local.ports import LOOPBACK, local_url
from deploy.local.services import OPERATOR_PORT_SETTING
from deploy.local.state import LocalState
from libs.client.errors import OperatorError
from libs.client.settings import OF_THE_COMMAND_LINE

COMMAND_SECONDS = 60.0
TENANT = "demo"
OPERATOR = "operator"
KEPT = ("subscription_key", "secret", "one_time_password")
"""Of what is created; the last one is for the first log-in at the console."""


def ensure_keys(state: LocalState) -> None:
    """Write `credentials.json`, with keys that are made when there are none yet. Raises OperatorError."""
    settings = state.read_environment()
    if not {OPERATOR_PORT_SETTING, "BANKSIDE_CONSOLE_PORT"} <= settings.keys():
        raise OperatorError(
            "The stack that runs is of an earlier release: `make down`, then `make up`."
        )
    known = state.read_json(state.credentials) or {}
    wanted: dict[str, object] = {
        "base_url": _url("GATEWAY", settings),
        "operator_url": _url("GATEWAY_OPERATOR", settings),
        "console_url": _url("CONSOLE", settings),
        **bank_addresses(settings),
    }
    for name, make in (("operator", _create_operator), ("partner", _create_partner)):
        wanted[name] = known.get(name) or make(state)
        if name not in known:  # at once: a key that is not kept is lost
            state.write_private(state.credentials, json.dumps(known | wanted, indent=2) + "\n")
    if known != wanted:
        state.write_private(state.credentials, json.dumps(wanted, indent=2) + "\n")
    kept = _without_used_password(state, known["operator"]) if "operator" in known else None
    if kept not in (None, known.get("operator")):
        state.write_private(
            state.credentials, json.dumps(wanted | {"operator": kept}, indent=2) + "\n"
        )


def _url(prefix: str, settings: Mapping[str, str]) -> str:
    host = settings.get(f"BANKSIDE_{prefix}_HOST", LOOPBACK)
    return local_url(host, settings[f"BANKSIDE_{prefix}_PORT"])


def _create_operator(state: LocalState) -> dict[str, str]:
    reason = "the first operator, by make up"
    return _created(
        state,
        "first operator",
        *("operators", "create", OPERATOR, "--role", "admin", "--login", "--at-database"),
        *("--reason", reason),
    )


def _without_used_password(state: LocalState, operator: dict[str, str]) -> dict[str, str]:
    """What is kept of the first operator: its one-time password only while it can be used."""
    if "one_time_password" not in operator:
        return operator
    found = _answered(state, "operators cannot be listed", "operators", "list")
    logins = {one["name"]: one["login"] for one in found}
    if logins.get(OPERATOR) == "one_time_password":
        return operator
    return {name: value for name, value in operator.items() if name != "one_time_password"}


def _create_partner(state: LocalState) -> dict[str, str]:
    return _created(
        state, "demo partner", "keys", "create", "--family", "partner", "--tenant", TENANT
    )


def _created(state: LocalState, what: str, *arguments: str) -> dict[str, str]:
    print(f"Creating the {what} and its key ...", flush=True)
    created = _answered(state, f"{what} could not be created", *arguments)
    return {name: created[name] for name in KEPT if created.get(name)}


def _answered(state: LocalState, failure: str, *arguments: str) -> Any:
    """What `bankside` prints as JSON, of the stack of this checkout alone. Raises OperatorError."""
    environment = os.environ | state.read_environment()
    try:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("bankside")), *arguments, "--json"],
            cwd=state.root,
            env={k: v for k, v in environment.items() if k not in OF_THE_COMMAND_LINE},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(f"The {failure} in time.") from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise OperatorError(f"The {failure}: {reason[-1] if reason else '?'}")
    return json.loads(done.stdout)
