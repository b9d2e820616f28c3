"""The demo partner: a tenant with keys, so that the first request can be signed at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deploy.local.banks import bank_addresses
from deploy.local.mistakes import Mistake
from deploy.local.ports import LOOPBACK
from deploy.local.state import LocalState

COMMAND_SECONDS = 60.0
TENANT = "demo"


def ensure_partner(state: LocalState) -> None:
    """Write `credentials.json`, with keys that are made when there are none yet. Raises Mistake."""
    settings = state.read_environment()
    known = state.read_json(state.credentials)
    wanted = {
        "base_url": f"http://{LOOPBACK}:{settings['BANKSIDE_GATEWAY_PORT']}",
        **bank_addresses(settings),
        "partner": known["partner"] if known else _create_keys(state),
    }
    if known != wanted:
        state.write_private(state.credentials, json.dumps(wanted, indent=2) + "\n")


def _create_keys(state: LocalState) -> dict[str, str]:
    print("Creating the demo partner and its keys ...", flush=True)
    try:
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("bankside")), "keys", "create"),
                *("--family", "partner", "--tenant", TENANT, "--json"),
            ],
            cwd=state.root,
            env=os.environ | state.read_environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Mistake("The demo partner could not be created in time.") from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Mistake(f"The demo partner could not be created: {reason[-1] if reason else '?'}")
    created = json.loads(done.stdout)
    return {name: created[name] for name in ("subscription_key", "secret")}
