"""libfaketime, with which a run of `make faults` steps the clock of a process: of the system's package `faketime`."""

from __future__ import annotations

from pathlib import Path

from deploy.local import debian
from deploy.local.state import LocalState

PACKAGE = "faketime"
_LIBRARY = "faketime/libfaketimeMT.so.1"
_FOLDERS = (Path("/usr/lib"), Path("/usr/local/lib"))


def find_faketime() -> Path | None:
    """The library, for processes with threads."""
    found = (path for folder in _FOLDERS for path in folder.glob(f"*/{_LIBRARY}"))
    return next(found, None)


def ensure_faketime(state: LocalState) -> str | None:
    """Install it when there is none. None when it is there, else why it is not."""
    if find_faketime() is not None:
        return None
    print("faketime is not installed: installing the system's package (once) ...", flush=True)
    reason = debian.install(PACKAGE, state.log("install"))
    return None if find_faketime() is not None else reason or "its package brought no library"
