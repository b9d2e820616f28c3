"""promtool, which checks Prometheus' configuration and tests its rules: of the system's package `prometheus`."""

from __future__ import annotations

import shutil

from deploy.local import debian
from deploy.local.state import LocalState

PACKAGE = "prometheus"


def find_promtool() -> str | None:
    return shutil.which("promtool")


def ensure_promtool(state: LocalState) -> str | None:
    """Install it when there is none, without starting Prometheus. None when it is there, else why it is not."""
    if find_promtool() is not None:
        return None
    print("promtool is not installed: installing the system's package (once) ...", flush=True)
    log = state.log("install")
    reason = debian.install(PACKAGE, log)
    if find_promtool() is None:
        return reason or "its package brought no program"
    debian.disable_service(PACKAGE, log)
    return None
