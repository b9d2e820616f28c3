"""Chromium, which the tests of the console and its screenshots drive: the system's package, or one that is there."""

from __future__ import annotations

import shutil

from deploy.local import debian
from deploy.local.state import LocalState

PACKAGE = "chromium-headless-shell"
"""Chromium without what draws windows: a page costs half the processor time."""
_WHOLE = "chromium"
"""What systems have instead whose packages have no such part."""
_NAMES = (PACKAGE, _WHOLE, "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def ensure_chromium(state: LocalState) -> str | None:
    """Install it when there is none. None when it is there, else why it is not."""
    if find_chromium() is not None:
        return None
    print("Chromium is not installed: installing the system's package (once) ...", flush=True)
    reason: str | None = None
    for package in (PACKAGE, _WHOLE):
        reason = debian.install(package, state.log("install"))
        if find_chromium() is not None:
            return None
    return reason or "its package brought no program"
