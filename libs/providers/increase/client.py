"""The client of Increase: its SDK, with our deadlines, circuit breaker and metrics around each call.

    client = IncreaseClient("core", "https://api.increase.com", key, session)
    wire = await client.read("get_wire", lambda sdk: sdk.wire_transfers.retrieve(wire_id), deadline=deadline)

The SDK retries nothing, follows no redirect, and refuses an answer that it reads and that is not of its own types.
Deadlines are Unix seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import httpx
import msgspec
import structlog
from increase import APIError, APIResponseValidationError, AsyncIncrease
from pydantic import ValidationError

from libs.providers.circuit import Circuit
from libs.providers.errors import AttemptFailed, Failure
from libs.providers.exchanges import Exchange, Exchanges
from libs.providers.feed_entries import describe
from libs.providers.increase.refusals import conclusion
from libs.providers.increase.transport import SessionTransport
from libs.providers.request_rate import RequestRate
from libs.providers.sessions import connections_of

LOGGED_FIELDS = 5
RETRIEVED_AT_ONCE = 8

AnswerT = TypeVar("AnswerT")

Call = Callable[[AsyncIncrease], Awaitable[AnswerT]]

_log = structlog.get_logger("providers")

for _library in ("increase", "httpx"):
    # Below this level they log requests with their queries and bodies.
    logging.getLogger(_library).setLevel(logging.WARNING)


class IncreaseClient:
    """Safe for any number of concurrent callers.

    Args:
        name: the role that Increase has here, for metrics and logs.
        base_url: absolute.
        key: the API key. It is in no log and in no exception.
        session: from `sessions.open_session`.
        timeout_seconds: at most this long for one exchange, from when it has a connection.
        retrievals: bounds how many objects `lists.retrieve_each` reads at once, of all clients that share it; None:
            `RETRIEVED_AT_ONCE` of this client.
        rate: of the requests of all clients that share it; None: as many as are answered.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str,
        session: aiohttp.ClientSession,
        *,
        timeout_seconds: float = 5.0,
        circuit: Circuit | None = None,
        retrievals: asyncio.Semaphore | None = None,
        rate: RequestRate | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"the URL of provider {name} must be absolute")
        self.retrievals = retrievals or asyncio.Semaphore(RETRIEVED_AT_ONCE)
        self._exchanges = Exchanges(
            name,
            timeout_seconds=timeout_seconds,
            circuit=circuit,
            connections=connections_of(session),
            rate=rate,
        )
        self._sdk = AsyncIncrease(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            http_client=httpx.AsyncClient(
                transport=SessionTransport(session), follow_redirects=False, trust_env=False
            ),
            default_headers={"Accept-Encoding": "identity"},
            _strict_response_validation=True,
        )

    async def read(self, operation: str, call: Call[AnswerT], *, deadline: float) -> AnswerT:
        """The answer of a read; tried up to three times with short pauses.

        Raises:
            ProviderRefusal: a definite no.
            ProviderTimeout: no answer in time.
            ProviderError: 5xx, a broken connection or an answer that cannot be read.
            Unavailable: Increase was not reached, or its circuit breaker is open.
        """
        return await self._exchanges.read(operation, self._exchange(call), deadline=deadline)

    async def repeated(self, operation: str, call: Call[AnswerT], *, deadline: float) -> AnswerT:
        """As `read`, with `AttemptFailed` for each way in which there is no usable answer."""
        return await self._exchanges.repeated(operation, self._exchange(call), deadline=deadline)

    async def once(self, operation: str, call: Call[AnswerT], *, deadline: float) -> AnswerT:
        """The answer of a write that is sent once. Whether it may be sent is decided by `writing.write_once`.

        `call` names the idempotency key of a POST, or the SDK makes one up.

        Raises:
            ProviderRefusal: a definite no; `KeyUsed` is one of them.
            AttemptFailed: there is no usable answer; its `failure` says whether there may be an effect.
        """
        return await self._exchanges.once(operation, self._exchange(call), deadline=deadline)

    def _exchange(self, call: Call[AnswerT]) -> Exchange[AnswerT]:
        async def exchange(seconds: float) -> AnswerT:
            try:
                async with asyncio.timeout(seconds):
                    answer = await call(self._sdk)
            except TimeoutError:
                raise AttemptFailed(Failure.TIMED_OUT) from None
            except APIError as error:
                _log_invalid(error)
                raise conclusion(error) from None
            except (ValueError, RecursionError) as error:
                # The body is no JSON, JSON of a depth that no answer has, or not of the shape that is read.
                if isinstance(error, msgspec.ValidationError):
                    _log.error("answer_has_another_shape", problem=describe("not read", error))
                raise AttemptFailed(Failure.UNREADABLE) from None
            if answer is None:
                raise AttemptFailed(Failure.UNREADABLE)
            return answer

        return exchange


def _log_invalid(error: APIError) -> None:
    """The places at which an answer is not of the SDK's types: what an operator needs to tell which release is old."""
    cause = error.__cause__
    if isinstance(error, APIResponseValidationError) and isinstance(cause, ValidationError):
        problems = cause.errors(include_url=False, include_context=False, include_input=False)
        fields = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['type']}"
            for problem in problems[:LOGGED_FIELDS]
        ]
        _log.error("answer_has_another_shape", model=cause.title, fields=fields)
