"""`bankside` in this process, its operator's questions answered by the handlers of the gateway and the services on the
databases and the broker of an environment: no service runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from libs.contracts.errors import Unavailable
from libs.contracts.exact_json import decode, encode
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database, open_database
from services.gateway.operating.asking import Services, adapter_of
from services.gateway.operating.of_services import OfServices
from tests.support.cli_in_process import run_in_process
from tests.support.command_line import Finished
from tests.support.infrastructure import Environment

NAME = "grace"
OPERATOR = Principal(
    "", "", Family.OPERATOR, "sub_grace", operator=NAME, address="127.0.0.1", request_id="request"
)
SECONDS = 60.0

HandlersOf = Callable[[Database], Mapping[str, QueryHandler]]
"""The handlers of one service on its database."""


@dataclass(frozen=True)
class _Answer:
    data: Any


@dataclass
class AnsweredOperators:
    """Runs commands of operators, which handlers in this process answer.

    Args:
        handlers: by service; one that is not among them does not answer.
    """

    environment: Environment
    handlers: Mapping[str, HandlersOf]
    asked: list[str] = field(default_factory=list)

    async def run(self, *arguments: str, terminal: bool = False) -> Finished:
        """Run the command to its end. `terminal`: it may ask, and is answered yes."""
        return await asyncio.to_thread(self._run, arguments, terminal)

    async def command(self, *arguments: str) -> Any:
        """As `Stack.command`."""
        done = await self.run(*arguments, "--json")
        assert done.status == 0, f"bankside {arguments}: {done.err}{done.out}"
        return decode(done.out)

    def _run(self, arguments: tuple[str, ...], terminal: bool) -> Finished:
        return run_in_process(self._operating, arguments, types="y" if terminal else None)

    @asynccontextmanager
    async def _operating(self, _: str | None = None) -> AsyncIterator[AnsweredOperators]:
        yield self

    async def call(self, operation: Operation, command: Command) -> _Answer:
        """In place of the client's. In a thread of its own, whose logs are no output of the command."""
        self.asked.append(operation.name)
        return await asyncio.to_thread(lambda: asyncio.run(self._answer(operation, command)))

    async def _answer(self, operation: Operation, command: Command) -> _Answer:
        async with self._opened() as handlers:
            services = Services(_Sender(handlers), _OrAway(handlers))
            answering = {**handlers, **OfServices(services).by_operation()}
            result = await answering[operation.name](OPERATOR, command, time.time() + SECONDS)
        data = decode(encode(result.payload(operation)["data"]))
        return _Answer(adapter_of(operation).validate_python(data, strict=False))

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[dict[str, QueryHandler]]:
        async with AsyncExitStack() as opened:
            handlers: dict[str, QueryHandler] = {}
            for service, handlers_of in self.handlers.items():
                database = open_database(self.environment.database_urls[service], "tests")
                opened.push_async_callback(database.close)
                handlers |= handlers_of(database)
            yield handlers


class _OrAway(dict[str, QueryHandler]):
    """Where a handler is missing, one that does not answer."""

    def __missing__(self, name: str) -> QueryHandler:
        return _away


async def _away(_: Principal, __: Any, ___: float) -> Result:
    raise Unavailable


class _Sender:
    """The services. One without handlers does not answer."""

    def __init__(self, handlers: Mapping[str, QueryHandler]) -> None:
        self._handlers = handlers

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        handler = self._handlers.get(operation.name)
        if handler is None:
            raise Unavailable
        result = await handler(principal, command, deadline)
        return {"data": decode(encode(result.payload(operation)["data"]))}
