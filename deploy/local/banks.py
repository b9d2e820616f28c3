"""Which bank a stack on this machine has: the provider sandbox, or the fake of Increase of the tests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.ports import LOOPBACK, local_url
from deploy.local.services import INCREASE_FAKE_PREFIX, ROLES, SERVICES, Secrets, Service
from libs.client.errors import OperatorError
from libs.runtime.probes import http_ready
from libs.runtime.supervision import ChildSpec

if TYPE_CHECKING:
    from deploy.local.state import Remembered

SANDBOX, INCREASE_FAKE = "sandbox", "increase-fake"
BANKS = (SANDBOX, INCREASE_FAKE)
PART = "increase_fake"
"""The fake's name among the parts of a stack."""
PORT_SETTING = f"{INCREASE_FAKE_PREFIX}PORT"
DEFAULT_PORT = 8091
PROVIDER_SETTINGS = tuple(f"BANKSIDE_{role}_PROVIDER" for role in ("IDENTITY", "CORE", "FINANCIAL"))


def chosen_bank(wanted: str | None, remembered: Remembered | None) -> str:
    """The bank of the stack, which stays that of its data. Raises OperatorError."""
    if wanted is not None and wanted not in BANKS:
        raise OperatorError(f"BANK is {wanted!r}, which is none of {', '.join(BANKS)}.")
    if remembered is None:
        return wanted or SANDBOX
    if wanted not in (None, remembered.bank):
        raise OperatorError(
            f"The data here is that of BANK={remembered.bank}, and no other bank knows its customers:"
            " `make up` goes on with it, `make clean` throws it away."
        )
    return remembered.bank


def bank_settings(bank: str, secrets: Secrets, port: int) -> dict[str, str]:
    """What the stack's settings have beyond those of the sandbox."""
    if bank != INCREASE_FAKE:
        return {}
    settings = dict.fromkeys(PROVIDER_SETTINGS, "increase")
    settings["BANKSIDE_INCREASE_URL"] = f"http://{LOOPBACK}:{port}"
    settings[PORT_SETTING] = str(port)
    settings[f"{INCREASE_FAKE_PREFIX}KEY"] = secrets.increase_fake_key
    for caller, key in secrets.increase_keys.items():
        settings[f"BANKSIDE_{ROLES[caller]}_INCREASE_KEY"] = key
    return settings


def services_beside(settings: Mapping[str, str]) -> tuple[Service, ...]:
    """The services that run: the sandbox only where it has a role."""
    has_role = any(settings.get(name, SANDBOX) == SANDBOX for name in PROVIDER_SETTINGS)
    return tuple(service for service in SERVICES if has_role or service.name != "provider_sandbox")


def has_fake(settings: Mapping[str, str]) -> bool:
    return PORT_SETTING in settings


def bank_addresses(settings: Mapping[str, str]) -> dict[str, str]:
    """The URLs of the banks that run here, by the names that `credentials.json` has for them."""
    found = {}
    if any(service.name == "provider_sandbox" for service in services_beside(settings)):
        host = settings.get("BANKSIDE_SANDBOX_HOST", LOOPBACK)
        found["sandbox_url"] = local_url(host, settings["BANKSIDE_SANDBOX_PORT"])
    if has_fake(settings):
        found["increase_fake_url"] = f"http://{LOOPBACK}:{settings[PORT_SETTING]}"
    return found


def fake_command(settings: Mapping[str, str], data: Path) -> tuple[str, ...]:
    """The arguments of `python -m`."""
    return ("tests.support.increase_bank", "--port", settings[PORT_SETTING], "--data", str(data))


def fake_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """What the fake may know of `settings`: all keys, since it tells its callers apart by them."""
    return {
        name: value
        for name, value in settings.items()
        if name.endswith("_INCREASE_KEY") or name.startswith(INCREASE_FAKE_PREFIX)
    }


def fake_child(
    settings: Mapping[str, str], data: Path, inherited: Mapping[str, str], cwd: Path, log: Path
) -> ChildSpec:
    return ChildSpec(
        PART,
        (sys.executable, "-m", *fake_command(settings, data)),
        env={**inherited, **fake_settings(settings)},
        ready=http_ready(LOOPBACK, int(settings[PORT_SETTING]), "/fake/health"),
        log_path=log,
        cwd=cwd,
    )
