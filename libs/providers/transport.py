"""One HTTP exchange with a provider: sent once, bounded in time and size, its outcome named, counted and timed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import structlog
from prometheus_client import Counter, Gauge, Histogram
from yarl import URL

from libs.contracts.exact_json import NotExactJson, decode
from libs.providers.circuit import Circuit
from libs.providers.errors import AttemptFailed, Failure, ProviderRefusal
from libs.providers.loop_lag import LoopLag
from libs.tls import client_context

MAX_ANSWER_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 30

REQUESTS = Counter(
    "bankside_provider_requests", "Requests to providers", ("provider", "operation", "outcome")
)
SECONDS = Histogram(
    "bankside_provider_request_seconds",
    "Time of one request to a provider",
    ("provider", "operation"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
CIRCUIT_OPEN = Gauge(
    "bankside_provider_circuit_open",
    "1 while the circuit breaker of a provider is open",
    ("provider",),
)

TURNS_AWAY = frozenset({401, 403, 429})
CREDENTIALS_REFUSED = frozenset({401, 403})
FAIR_SECONDS = 1.0
"""A timeout counts as a failure of the provider only after this time, of which a late event loop of ours is no part: a
caller's near deadline is not the provider's fault.
"""


def open_session(connections: int, *, ca_file: str | None = None) -> aiohttp.ClientSession:
    """The HTTP session of one process: at most `connections`, kept alive; no cookies, no proxy of the environment.

    Called within a running event loop. The caller closes the session.

    Args:
        ca_file: the CAs of the providers' certificates, instead of those that the system trusts.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=connections,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            ssl=client_context(ca_file) if ca_file else True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


class ProviderTransport:
    """One HTTP exchange after another with one provider: its session, credentials, circuit breaker and metrics."""

    def __init__(
        self,
        name: str,
        token: str,
        session: aiohttp.ClientSession,
        timeout_seconds: float,
        circuit: Circuit | None,
    ) -> None:
        self._name = name
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._loop_lag = LoopLag()
        self._circuit = circuit or Circuit(changed=self._circuit_changed)
        self._headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        self._log = structlog.get_logger("providers").bind(provider=name)
        CIRCUIT_OPEN.labels(name).set(0)

    async def attempt(
        self,
        operation: str,
        method: str,
        url: URL,
        *,
        deadline: float,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send once; the decoded answer.

        Args:
            deadline: Unix seconds; the attempt ends by then, and within the provider's own timeout.

        Raises:
            ProviderRefusal: 4xx in the provider's error shape.
            AttemptFailed: no usable answer.
        """
        seconds = min(self._timeout_seconds, deadline - time.time())
        if seconds <= 0:
            raise self._failed(operation, Failure.NO_TIME)
        if not self._circuit.admit():
            raise self._failed(operation, Failure.CIRCUIT_OPEN)
        started = time.perf_counter()
        late_seconds = 0.0
        try:
            with self._loop_lag.measured() as lag:
                try:
                    answer = await self._exchange(
                        method,
                        url,
                        data,
                        {**self._headers, **headers} if headers else self._headers,
                        seconds,
                    )
                finally:
                    late_seconds = lag()
        except ProviderRefusal:
            self._circuit.succeeded()
            self._count(operation, "refused")
            raise
        except AttemptFailed as error:
            if error.failure is Failure.TIMED_OUT and not self._was_fair(seconds, late_seconds):
                self._circuit.abandoned()
            elif error.failure.is_strike:
                self._circuit.failed()
            else:
                self._circuit.succeeded()
            self._count(operation, error.failure.value)
            if (
                method != "GET"
                or error.failure is Failure.UNREADABLE
                or error.status in CREDENTIALS_REFUSED
            ):
                self._log.warning(
                    "attempt_failed",
                    operation=operation,
                    failure=error.failure.value,
                    status=error.status,
                    late_seconds=round(late_seconds, 1),
                )
            raise
        except BaseException:
            self._circuit.abandoned()
            self._count(operation, "abandoned")
            raise
        finally:
            SECONDS.labels(self._name, operation).observe(time.perf_counter() - started)
        self._circuit.succeeded()
        self._count(operation, "ok")
        return answer

    def _was_fair(self, seconds: float, late_seconds: float) -> bool:
        """Whether a timeout says something about the provider: this process waited long enough, and could listen."""
        fair_seconds = min(FAIR_SECONDS, self._timeout_seconds)
        return seconds >= fair_seconds and seconds - late_seconds >= fair_seconds / 2

    async def _exchange(
        self, method: str, url: URL, data: bytes | None, headers: Mapping[str, str], seconds: float
    ) -> Any:
        timeout = aiohttp.ClientTimeout(
            total=seconds, sock_connect=min(seconds, CONNECT_SECONDS), ceil_threshold=3600
        )
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                status = response.status
                body = await _read(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise AttemptFailed(Failure.NOT_CONNECTED) from None
        except TimeoutError:
            raise AttemptFailed(Failure.TIMED_OUT) from None
        except aiohttp.ClientError as error:
            raise AttemptFailed(Failure.BROKEN) from error
        if status >= 500:
            raise AttemptFailed(Failure.SERVER_ERROR, status)
        if status in TURNS_AWAY:
            raise AttemptFailed(Failure.TURNED_AWAY, status)
        try:
            answer = decode(body)
        except NotExactJson as error:
            raise AttemptFailed(Failure.UNREADABLE, status) from error
        if 200 <= status < 300:
            return answer
        if 400 <= status < 500:
            raise refusal(status, answer)
        raise AttemptFailed(Failure.UNREADABLE, status)

    def _failed(self, operation: str, failure: Failure) -> AttemptFailed:
        self._count(operation, failure.value)
        return AttemptFailed(failure)

    def _count(self, operation: str, outcome: str) -> None:
        REQUESTS.labels(self._name, operation, outcome).inc()

    def _circuit_changed(self, is_open: bool) -> None:
        CIRCUIT_OPEN.labels(self._name).set(is_open)
        self._log.warning("circuit_opened" if is_open else "circuit_closed")


def refusal(status: int, body: Any) -> ProviderRefusal:
    """The refusal that a 4xx body states.

    Raises:
        AttemptFailed: the body is not of the provider's error shape, so it may not be the provider that answered.
    """
    match body:
        case {"error": {"code": str(code), "message": str(message)}}:
            return ProviderRefusal(status, code, message)
        case _:
            raise AttemptFailed(Failure.UNREADABLE, status)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    content = response.content
    first = await content.readany()
    if content.at_eof():
        return first
    parts = [first]
    size = len(first)
    while not content.at_eof():
        part = await content.readany()
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise AttemptFailed(Failure.UNREADABLE, response.status)
        parts.append(part)
    return b"".join(parts)
