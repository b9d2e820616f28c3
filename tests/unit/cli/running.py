"""`bankside` in a process of its own, for commands that go on until they are told to stop."""

from __future__ import annotations

import os
import re
import signal
import uuid
from pathlib import Path

from tests.support.launching import Program, forked
from tests.support.waiting import eventually
from tests.unit.client.answering import KEY


class Running:
    """Forked like the services (`launching`)."""

    def __init__(self, folder: Path, base_url: str, *arguments: str) -> None:
        self._out, self._err = (folder / f"{uuid.uuid4()}.{name}" for name in ("out", "err"))
        for file in (self._out, self._err):
            file.touch()
        self._read = 0
        self._process = forked(
            Program(
                module="libs.cli",
                arguments=arguments,
                environment={
                    **os.environ,
                    "BANKSIDE_BASE_URL": base_url,
                    "BANKSIDE_SUBSCRIPTION_KEY": KEY.subscription_key,
                    "BANKSIDE_SECRET": KEY.secret,
                },
                folder=str(folder),
                output=str(self._out),
                errors=str(self._err),
            )
        )

    async def said(self, pattern: str) -> re.Match[str]:
        """What it says on standard error."""

        async def there() -> re.Match[str] | None:
            assert self._process.poll() is None, self._err.read_text()
            return re.search(pattern, self._err.read_text())

        return await eventually(f"it says {pattern}", there)

    def forget(self) -> None:
        """What it has said on standard error."""
        self._err.write_text("")

    async def line(self) -> str:
        """The next of its output."""

        async def there() -> str | None:
            lines = self._out.read_text().splitlines(keepends=True)
            return lines[self._read] if len(lines) > self._read else None

        line = await eventually("a line", there)
        self._read += 1
        return line

    def signal(self, signum: signal.Signals) -> None:
        os.kill(self._process.pid, signum)

    async def ended(self) -> tuple[int, str]:
        """Exit status and the rest of standard error."""

        async def has_ended() -> bool:
            return self._process.poll() is not None

        await eventually("it has ended", has_ended)
        return self._process.poll() or 0, self._err.read_text()

    @property
    def out(self) -> str:
        return self._out.read_text()

    def kill(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
