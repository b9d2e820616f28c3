"""The output of a child process, so that the memory used to make it is freed when the child exits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE

DEADLINE_SECONDS = 60.0


class NoOutput(Exception):
    """The child could not be started, failed, or took too long."""


class ChildOutput:
    """What `python -m MODULE ARGUMENTS` writes to stdout. The child is started once, when its output is first read. It
    gets no `BANKSIDE_` variable, so no secret.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = (sys.executable, "-m", module, *arguments)
        self._running: asyncio.Task[bytes] | None = None

    async def read(self) -> bytes:
        """The whole output. Callers that read at the same time wait for the same child.

        Raises:
            NoOutput: the next caller starts the child again.
        """
        if self._running is None or (self._running.done() and self._failed(self._running)):
            self._running = asyncio.create_task(self._run(), name=self._command[-1])
        return await asyncio.shield(self._running)

    async def close(self) -> None:
        """End the child, if it runs. Callers that wait for it get a CancelledError."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait({self._running})

    @staticmethod
    def _failed(running: asyncio.Task[bytes]) -> bool:
        return running.cancelled() or running.exception() is not None

    async def _run(self) -> bytes:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=DEVNULL, stdout=PIPE, env=environment
            )
        except OSError as error:
            raise NoOutput(f"cannot start: {error.strerror}") from error
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise NoOutput(f"not within {DEADLINE_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            raise NoOutput(f"exit code {process.returncode}")
        return output
