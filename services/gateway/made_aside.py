"""Bytes that a process of its own makes, with which the memory that making them takes is given back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE

DEADLINE_SECONDS = 60.0


class NotMade(Exception):
    """The process ended without them, or took too long."""


class MadeAside:
    """What `python -m MODULE ARGUMENTS` writes to stdout. The process is started when they are first asked for, and
    once. It is given no `BANKSIDE_` variable, so no secret.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = (sys.executable, "-m", module, *arguments)
        self._making: asyncio.Task[bytes] | None = None

    async def made(self) -> bytes:
        """All who ask meanwhile wait for the same process. Raises NotMade; who asks after that has it started again."""
        if self._making is None or (self._making.done() and self._failed(self._making)):
            self._making = asyncio.create_task(self._make(), name=self._command[-1])
        return await asyncio.shield(self._making)

    async def close(self) -> None:
        """End the process, if it runs. Who waits for it gets a CancelledError."""
        if self._making is not None and not self._making.done():
            self._making.cancel()
            await asyncio.wait({self._making})

    @staticmethod
    def _failed(making: asyncio.Task[bytes]) -> bool:
        return making.cancelled() or making.exception() is not None

    async def _make(self) -> bytes:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=DEVNULL, stdout=PIPE, env=environment
        )
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise NotMade(f"not within {DEADLINE_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            raise NotMade(f"exit code {process.returncode}")
        return output
