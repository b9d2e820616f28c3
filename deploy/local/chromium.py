"""Chromium, which the tests of the console and its screenshots drive: the system's package, or one that is there."""

from __future__ import annotations

import shutil

from deploy.local import debian
from deploy.local.state import LocalState

PACKAGE = "chromium"
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def ensure_chromium(state: LocalState) -> str | None:
    """Install it when there is none. None when it is there, else why it is not."""
    if find_chromium() is not None:
        return None
    print("Chromium is not installed: installing the system's package (once) ...", flush=True)
    reason = debian.install(PACKAGE, state.log("install"))
    if find_chromium() is not None:
        return None
    return reason or "its package brought no program"
