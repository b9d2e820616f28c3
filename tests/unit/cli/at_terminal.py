"""`bankside` in this process, its questions to the gateway answered by functions: no gateway runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from libs.contracts.model import Command
from libs.contracts.operation import Operation
from tests.support.cli_in_process import run_in_process
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
        return run_in_process(self._operating, arguments, types=types)

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
