"""Where the servers of tests keep their files."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED_BYTES = 8 * 1024**3
"""What a run writes at most, with room to spare."""
PREFIX = "bankside-test-"
_LOCK = "lock"


@contextmanager
def servers_folder() -> Iterator[Path]:
    """A new folder, removed at the end. Those of runs that were killed are removed first.

    It is in memory where there is room and programs may be run (PostgreSQL may be copied beside its data): a database
    is copied there in a tenth of the processor time.
    """
    base = MEMORY if _is_fit(MEMORY) else Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}*/{_LOCK}"):
        _remove_if_unused(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    folder.chmod(0o711)  # PostgreSQL may run as another user than we do
    lock = os.open(folder / "unlocked", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "unlocked").rename(folder / _LOCK)
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(lock)


def _is_fit(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    room = min(found.f_bavail * found.f_frsize, _available_memory())
    return room >= NEEDED_BYTES and not found.f_flag & os.ST_NOEXEC


def _available_memory() -> int:
    """Bytes that can be used without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _remove_if_unused(lock_file: Path) -> None:
    """Whoever uses a folder holds its lock, and a process that dies gives it up."""
    try:
        lock = os.open(lock_file, os.O_RDWR)
    except FileNotFoundError:  # its run ends just now
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(lock_file.parent, ignore_errors=True)  # another run may remove it, too
    finally:
        os.close(lock)
