"""The operator family as the console asks it: signed with the console's key, on behalf of one operator's session."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol, TypeVar

import aiohttp
import structlog

from libs.client.answers import unanswered
from libs.client.client import Client
from libs.client.credentials import Credentials
from libs.client.transport import Transport
from libs.contracts.errors import TimestampOutOfWindow
from libs.contracts.model import Command
from libs.contracts.operating.sessions import BROWSER_HEADER, SESSION_HEADER
from libs.contracts.operation import Operation

C = TypeVar("C", bound=Command)
R = TypeVar("R")

ATTEMPTS = 2
WRITE_FACTOR = 2.0
"""What changes something may take this much longer than what is only read."""
_log = structlog.get_logger("console")


class OperatorApi(Protocol):
    """The gateway's operator API, on behalf of one operator's session."""

    async def ask(self, operation: Operation[C, R], command: C) -> R:
        """The data of the answer.

        Raises:
            BanksideError: as the gateway answered; Unavailable when it cannot be reached, ProviderTimeout and
                OutcomePending when it did not answer in time.
        """
        ...


class Gateway(Protocol):
    def of(self, token: str | None, browser: str | None = None) -> OperatorApi:
        """As the operator of this session; None: as the console itself, which may only begin sessions.

        Args:
            browser: the address of the operator's browser, for the audit.
        """
        ...


@dataclass(frozen=True, slots=True)
class _OperatorApi:
    client: Client
    answer_seconds: float

    async def ask(self, operation: Operation[C, R], command: C) -> R:
        seconds = self.answer_seconds * (1 if operation.is_read else WRITE_FACTOR)
        try:
            async with asyncio.timeout(seconds):
                return (await self.client.call(operation, command)).data
        except TimeoutError:
            raise unanswered(operation) from None
        except TimestampOutOfWindow as error:
            server_time = error.extra.get("server_time")
            ahead = int(time.time()) - server_time if isinstance(server_time, int) else None
            _log.error("clock_refused", ahead_of_gateway_seconds=ahead)
            raise


class SignedGateway:
    """The gateway over HTTP. Requests are signed with the console's key.

    Args:
        answer_seconds: for an answer to a read.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        session: aiohttp.ClientSession,
        answer_seconds: float,
    ) -> None:
        self._base_url = base_url
        self._credentials = credentials
        self._session = session
        self._answer_seconds = answer_seconds

    def of(self, token: str | None, browser: str | None = None) -> OperatorApi:
        given = {SESSION_HEADER: token, BROWSER_HEADER: browser}
        headers = {name: value for name, value in given.items() if value}
        transport = Transport(self._base_url, self._credentials, self._session, headers)
        client = Client(transport, attempts=ATTEMPTS, patience_seconds=self._answer_seconds)
        return _OperatorApi(client, self._answer_seconds)
