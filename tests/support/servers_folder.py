"""Where the servers of tests keep their files."""

from __future__ import annotations

import contextlib
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
PREFIX, LOCK = "bankside-servers-", ".lock"


@contextmanager
def servers_folder() -> Iterator[Path]:
    """A new folder, removed at the end. Those of runs that were killed are removed first.

    It is in memory where there is room: a database is copied there in a tenth of the processor time. The programs of
    PostgreSQL may be copied into it, so that it has to be where programs may be run.

    A lock file beside the folder is locked while it is used; the lock of a process that dies is free.
    """
    for base in (MEMORY, _disk()):
        for left in base.glob(f"{PREFIX}*{LOCK}"):
            with contextlib.suppress(OSError):  # of another user, in use, or removed just now
                _remove(left)
    base = MEMORY if _is_fit(MEMORY) else _disk()
    lock, lock_file = tempfile.mkstemp(prefix=PREFIX, suffix=LOCK, dir=base)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = _folder_of(Path(lock_file))
        folder.mkdir()
        folder.chmod(0o711)  # PostgreSQL may run as another user than we do
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
        Path(lock_file).unlink(missing_ok=True)
    finally:
        os.close(lock)


def _disk() -> Path:
    return Path(tempfile.gettempdir())


def _folder_of(lock_file: Path) -> Path:
    return lock_file.with_name(lock_file.name.removesuffix(LOCK))


def _remove(lock_file: Path) -> None:
    """The lock file last: what a removal leaves behind is found by it again.

    Raises:
        OSError: its lock is held, or something of it cannot be removed.
    """
    lock = os.open(lock_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(_folder_of(lock_file))
        lock_file.unlink()
    finally:
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
