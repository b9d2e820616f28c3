"""Where the servers of tests keep their files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED_BYTES = 8 * 1024**3
"""What a run writes at most, with room to spare."""


def servers_folder() -> Path:
    """In memory where the machine has room: a database is copied there in a tenth of the processor time.

    In most containers there is little room, or PostgreSQL, which may be copied beside its data, could not be run there.
    """
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return Path(tempfile.gettempdir())
    has_room = found.f_bavail * found.f_frsize >= NEEDED_BYTES
    may_run = not found.f_flag & os.ST_NOEXEC
    return MEMORY if has_room and may_run else Path(tempfile.gettempdir())
