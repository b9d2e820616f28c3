"""Exchanges with one provider, by any transport: each bounded by a deadline, let through by the circuit breaker, its
outcome counted and timed.

An exchange sends one request once and returns its answer, or raises `ProviderRefusal` or `AttemptFailed`.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from prometheus_client import Counter, Gauge, Histogram

from libs import tracing
from libs.backoff import Backoff, lengthened
from libs.log_throttle import LogThrottle
from libs.providers.circuit import Circuit
from libs.providers.errors import AttemptFailed, Failure, ProviderRefusal, read_error
from libs.providers.loop_lag import LoopLag
from libs.providers.request_rate import RequestRate

READ_ATTEMPTS = 3
READ_RETRIES = Backoff(first_seconds=0.05, longest_seconds=1.0, factor=4.0, jitter=0.5)
REST_JITTER = 0.1

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
    "1 while the circuit breaker of a provider is open, and the process has asked the provider in the last ten minutes",
    ("provider",),
)

CREDENTIALS_REFUSED = frozenset({401, 403})
FAIR_SECONDS = 1.0
"""A timeout counts as a failure of the provider only after this time, of which a late event loop of ours is no part: a
caller's near deadline is not the provider's fault.
"""

AnswerT = TypeVar("AnswerT")

Exchange = Callable[[float], Awaitable[AnswerT]]
"""Makes one exchange within this number of seconds. Raises ProviderRefusal, AttemptFailed; a timeout is TIMED_OUT."""


class Exchanges:
    """Safe for any number of concurrent callers.

    Args:
        name: the provider's role, for metrics and logs.
        timeout_seconds: at most this long for one exchange, from when it has a connection.
        connections: of the session (`sessions.connections_of`). Where all are in use by slow exchanges, the time that
            further ones wait is not the provider's fault; None: the exchanges use no session.
        rate: of all requests, those of other exchanges that share it included; None: as many as are answered.
    """

    def __init__(
        self,
        name: str,
        *,
        timeout_seconds: float = 5.0,
        circuit: Circuit | None = None,
        connections: asyncio.Semaphore | None = None,
        rate: RequestRate | None = None,
    ) -> None:
        self._name = name
        self._timeout_seconds = timeout_seconds
        self._connections = connections
        self._rate = rate
        self._loop_lag = LoopLag()
        self._circuit = circuit or Circuit(changed=self._circuit_changed)
        self._rest_until = 0.0
        """By `time.monotonic`: the provider has asked for no request before."""
        self._failed_reads: defaultdict[tuple[str, Failure], LogThrottle] = defaultdict(LogThrottle)
        self._log = structlog.get_logger("providers").bind(provider=name)
        CIRCUIT_OPEN.labels(name).set_function(lambda: self._circuit.is_shown_open)

    async def read(
        self, operation: str, exchange: Exchange[AnswerT], *, deadline: float
    ) -> AnswerT:
        """As `repeated`, its failures as errors for callers.

        Raises:
            ProviderRefusal: a definite no.
            ProviderTimeout: no answer in time.
            ProviderError: 5xx, a broken connection or an answer that cannot be read.
            Unavailable: the provider was not reached, or its circuit breaker is open.
        """
        try:
            return await self.repeated(operation, exchange, deadline=deadline)
        except AttemptFailed as error:
            raise read_error(error.failure) from error

    async def repeated(
        self, operation: str, exchange: Exchange[AnswerT], *, deadline: float
    ) -> AnswerT:
        """The answer of a read; tried up to three times with short pauses, within the deadline.

        While the provider wants no requests nothing is read; a read whose deadline comes before is turned away at once.

        Raises:
            ProviderRefusal: a definite no.
            AttemptFailed: there is no usable answer.
        """
        for attempt in range(1, READ_ATTEMPTS + 1):
            await self._rest(operation, deadline)
            try:
                return await self.once(operation, exchange, deadline=deadline, is_write=False)
            except AttemptFailed as error:
                asks_for_rest = error.retry_after_seconds is not None
                pause = 0.0 if asks_for_rest else READ_RETRIES.pause_seconds(attempt)
                no_time = time.time() + pause >= deadline
                is_last = attempt == READ_ATTEMPTS or no_time
                if is_last or not (asks_for_rest or error.failure.is_strike):
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def once(
        self,
        operation: str,
        exchange: Exchange[AnswerT],
        *,
        deadline: float,
        is_write: bool = True,
    ) -> AnswerT:
        """The answer of one exchange. Whether a write may be sent is decided by `writing.write_once`.

        Args:
            deadline: Unix seconds; the exchange ends by then, and within the provider's own timeout. Until then it
                waits for a connection.
            is_write: its failures are logged, all of them. Of a read, those of one kind are logged once in a period.

        Raises:
            ProviderRefusal: a definite no.
            AttemptFailed: no usable answer; its `failure` says whether there may be an effect.
        """
        if self._connections is None:
            return await self._begun(operation, exchange, deadline, is_write=is_write)
        await self._wait_for_connection(self._connections, operation, deadline)
        try:
            return await self._begun(operation, exchange, deadline, is_write=is_write)
        finally:
            self._connections.release()

    async def _wait_for_connection(
        self, connections: asyncio.Semaphore, operation: str, deadline: float
    ) -> None:
        if not connections.locked():
            await connections.acquire()  # at once
            return
        if self._circuit.refuses:
            raise self._failed(operation, Failure.CIRCUIT_OPEN)
        try:
            async with asyncio.timeout(deadline - time.time()):
                await connections.acquire()
        except TimeoutError:
            raise self._failed(operation, Failure.NO_TIME) from None

    async def _begun(
        self, operation: str, exchange: Exchange[AnswerT], deadline: float, *, is_write: bool
    ) -> AnswerT:
        """`once`, as soon as there is a connection: when it is its turn."""
        if self._rate is not None and not await self._rate.turn(deadline):
            raise self._failed(operation, Failure.NO_TIME)
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
                    answer = await self._in_span(operation, exchange, seconds)
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
            if error.retry_after_seconds is not None:
                rest_until = time.monotonic() + error.retry_after_seconds
                self._rest_until = max(self._rest_until, rest_until)
            self._count(operation, error.failure.value)
            self._log_failed(operation, error, late_seconds, is_write=is_write)
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

    def _log_failed(
        self, operation: str, error: AttemptFailed, late_seconds: float, *, is_write: bool
    ) -> None:
        left_out: int | None = 0
        if not (
            is_write or error.failure is Failure.UNREADABLE or error.status in CREDENTIALS_REFUSED
        ):
            left_out = self._failed_reads[operation, error.failure].left_out()
        if left_out is not None:
            self._log.warning(
                "attempt_failed",
                operation=operation,
                failure=error.failure.value,
                status=error.status,
                late_seconds=round(late_seconds, 1),
                left_out=left_out,
            )

    async def _in_span(
        self, operation: str, exchange: Exchange[AnswerT], seconds: float
    ) -> AnswerT:
        """The exchange, in a span to which its transport adds what is HTTP's."""
        if (parent := tracing.parent()) is None:
            return await exchange(seconds)
        about = {"bankside.provider": self._name, "bankside.provider_operation": operation}
        with tracing.span(f"{self._name} {operation}", "client", parent, about) as span:
            try:
                return await exchange(seconds)
            except (ProviderRefusal, AttemptFailed) as error:
                if span is not None:
                    _conclude(span, error)
                raise

    async def _rest(self, operation: str, deadline: float) -> None:
        """Return when the provider takes requests again. Writes do not wait: their command begins them anew, later."""
        while (seconds := self._rest_until - time.monotonic()) > 0:
            if time.time() + seconds >= deadline:
                raise self._failed(operation, Failure.TURNED_AWAY)
            await asyncio.sleep(lengthened(seconds, REST_JITTER))

    def _was_fair(self, seconds: float, late_seconds: float) -> bool:
        """Whether a timeout says something about the provider: this process waited long enough, and could listen."""
        fair_seconds = min(FAIR_SECONDS, self._timeout_seconds)
        return seconds >= fair_seconds and seconds - late_seconds >= fair_seconds / 2

    def _failed(self, operation: str, failure: Failure) -> AttemptFailed:
        self._count(operation, failure.value)
        return AttemptFailed(failure)

    def _count(self, operation: str, outcome: str) -> None:
        REQUESTS.labels(self._name, operation, outcome).inc()

    def _circuit_changed(self, is_open: bool) -> None:
        if is_open:
            self._log.warning("circuit_opened")
        else:
            self._log.info("circuit_closed")


def _conclude(span: tracing.Span, error: ProviderRefusal | AttemptFailed) -> None:
    match error:
        case ProviderRefusal():
            span.set({"bankside.outcome": "refused"})
            span.fail(str(error.status))
        case AttemptFailed():
            span.set({"bankside.outcome": error.failure.value})
            span.fail(error.failure.value)
