"""`bankside` in this process, its questions to the gateway answered by functions: no gateway runs."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from libs.cli import audit, cli
from libs.client import operator_client
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from tests.support.command_line import Finished


@dataclass(frozen=True)
class _Answer:
    data: Any


@dataclass
class AtTerminal:
    """Runs commands of an operator.

    Args:
        answers: by the names of operations; what each returns or raises is the gateway's answer to the command.
    """

    answers: Mapping[str, Callable[[Any], Any]]
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """Operation and command, in their order."""

    def run(self, *arguments: str, types: str | None = None) -> Finished:
        """Run the command to its end. `types`: what is typed where it asks; without it there is no terminal."""
        out, errors, status = io.StringIO(), io.StringIO(), 0
        standard_input = io.StringIO(f"{types or ''}\n")
        standard_input.isatty = lambda: types is not None  # type: ignore[method-assign]
        with (
            patch.object(operator_client, "operating", self._operating),
            patch.object(audit, "operating", self._operating),
            patch.object(cli, "_silence_libraries", lambda: None),
            patch.object(cli, "load_stack_environment", lambda: None),
            patch.object(sys, "argv", ["bankside", *arguments]),
            patch.object(sys, "stdin", standard_input),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            try:
                cli.main()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
        return Finished(status, out.getvalue(), errors.getvalue())

    @property
    def operations(self) -> list[str]:
        return [name for name, _ in self.asked]

    @asynccontextmanager
    async def _operating(self, _: str | None = None) -> AsyncIterator[AtTerminal]:
        yield self

    async def call(self, operation: Operation, command: Command) -> _Answer:
        """In place of the client's."""
        self.asked.append((operation.name, command))
        return _Answer(self.answers[operation.name](command))
