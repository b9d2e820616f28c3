"""Asking another service from within one, and taking its reply for what the table says it is."""

from __future__ import annotations

import time
from typing import Any, Protocol, TypeVar

import structlog
from pydantic import ValidationError

from libs.contracts.errors import BanksideError, Unavailable
from libs.contracts.model import Command, Model
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal

ModelT = TypeVar("ModelT", bound=Model)


class Asks(Protocol):
    """The part of `libs.messaging.caller.Caller` that is needed here."""

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any: ...


class Asking:
    """Args:
    patience_seconds: how long the other service may take to answer before it counts as away.
    """

    def __init__(self, caller: Asks, *, patience_seconds: float) -> None:
        self._caller = caller
        self._patience_seconds = patience_seconds
        self._log = structlog.get_logger("asking")

    async def ask(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        reply: type[ModelT],
        deadline: float,
    ) -> ModelT:
        """The reply's data.

        Args:
            deadline: Unix seconds.

        Raises:
            Unavailable: the service could not be asked, did not answer in time, or answered that it cannot tell.
            BanksideError: as replied, when that is about what was asked.
        """
        patience = min(deadline, time.time() + self._patience_seconds)
        try:
            payload = await self._caller.query(operation, principal, command, patience)
        except BanksideError as error:
            if error.status >= 500:
                raise Unavailable from error
            raise
        try:
            return reply.model_validate(payload["data"], extra="ignore")  # of a newer service
        except ValidationError as error:
            raise self.broken(operation) from error

    def broken(self, operation: Operation) -> Unavailable:
        """What to raise for a reply that makes no sense."""
        self._log.error("reply_broken", operation=operation.name)
        return Unavailable()
