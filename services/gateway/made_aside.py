"""Bytes that a forked process makes: what making them takes of memory ends with that process, and is not kept here."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from collections.abc import Callable

DEADLINE_SECONDS = 60.0


class MadeAside:
    """Begun at once, in a fork of this process, which must have neither threads nor a running event loop yet.

    Args:
        what: its name, for the error.
    """

    def __init__(self, what: str, make: Callable[[], bytes]) -> None:
        self._what = what
        self._reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            # Else this process would read from itself, and wait for ever once the other one has ended.
            os.close(self._reading)
            _make_and_exit(make, writing)
        os.close(writing)

    async def made(self) -> bytes:
        """To be awaited once. Raises RuntimeError when they could not be made, and TimeoutError."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                output, status = await asyncio.to_thread(self._read)
        except BaseException:
            os.kill(
                self._pid, signal.SIGKILL
            )  # which ends the read, for whose thread the process would wait
            raise
        if status != 0:
            raise RuntimeError(f"{self._what} could not be made")
        return output

    def _read(self) -> tuple[bytes, int]:
        with os.fdopen(self._reading, "rb") as pipe:
            output = pipe.read()
        return output, os.waitpid(self._pid, 0)[1]


def _make_and_exit(make: Callable[[], bytes], writing: int) -> None:
    """Without what Python does at its end: it belongs to the process that forked."""
    status = 1
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(make())
        status = 0
    except BrokenPipeError:
        pass  # the process that forked has ended
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
