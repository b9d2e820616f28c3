"""The log files of supervised children: the children append, their supervisor rotates."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

LARGEST_BYTES = 20 * 1024 * 1024
LOOK_EVERY_SECONDS = 10.0


@contextlib.contextmanager
def open_log(path: Path | None) -> Iterator[IO[bytes] | None]:
    """Open a log for a child to append to; None stays None."""
    if path is None:
        yield None
        return
    with path.open("ab") as log:
        yield log


def cut(path: Path) -> None:
    """Copy a log that has grown too large to `<name>.1` and truncate it; its child goes on appending. On a full disk it
    is truncated without a copy.
    """
    if path.exists() and path.stat().st_size > LARGEST_BYTES:
        older = path.with_name(f"{path.name}.1")
        try:
            shutil.copyfile(path, older)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            older.unlink(missing_ok=True)
        os.truncate(path, 0)


async def keep_bounded(paths: Callable[[], Iterable[Path]]) -> None:
    """Rotate the logs that `paths` names, until cancelled."""
    while True:
        for path in list(paths()):
            cut(path)
        await asyncio.sleep(LOOK_EVERY_SECONDS)
