"""Queries from one service to another; the reply is validated as the model that the table of operations names."""

from __future__ import annotations

import time
from typing import Any, Protocol, TypeVar

import structlog
from pydantic import ValidationError

from libs.contracts.errors import BanksideError, Unavailable
from libs.contracts.model import OF_ANY_RELEASE, Command, Model
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal

ModelT = TypeVar("ModelT", bound=Model)


class QuerySender(Protocol):
    """The part of `libs.messaging.service_client.ServiceClient` that sends queries."""

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any: ...


class QueryClient:
    """Sends queries to other services.

    Args:
        patience_seconds: a service that does not answer within this time counts as unavailable.
    """

    def __init__(self, service_client: QuerySender, *, patience_seconds: float) -> None:
        self._service_client = service_client
        self._patience_seconds = patience_seconds
        self._log = structlog.get_logger("queries")

    async def query(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        reply: type[ModelT],
        deadline: float,
    ) -> ModelT:
        """The reply's data.

        Args:
            deadline: Unix seconds; infinity where the client's patience is the only bound.

        Raises:
            Unavailable: the query was not sent, not answered in time, or answered by an error of 5xx.
            BanksideError: the error of 4xx that the service answered.
        """
        patience = min(deadline, time.time() + self._patience_seconds)
        try:
            payload = await self._service_client.query(operation, principal, command, patience)
        except BanksideError as error:
            if error.status >= 500:
                raise Unavailable from error
            raise
        try:
            return reply.model_validate(
                payload["data"], extra="ignore", context={OF_ANY_RELEASE: True}
            )
        except ValidationError as error:
            raise self.broken(operation) from error

    def broken(self, operation: Operation) -> Unavailable:
        """Log a reply that contradicts the query; the error to raise for it."""
        self._log.error("reply_broken", operation=operation.name)
        return Unavailable()
