"""Answering the queries of a service, each before its deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import structlog

from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    BanksideError,
    InternalError,
    OutcomePending,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.contracts.request_context import RequestContext, request_context
from libs.contracts.result import Result
from libs.contracts.sensitive import Sealer
from libs.contracts.table import operations_of
from libs.handling.answers import ANSWER_MARGIN_SECONDS
from libs.handling.bulkhead import Bulkhead
from libs.handling.handled import OK, conclude, note_handled, processing
from libs.handling.metrics import HANDLED_SECONDS
from libs.handling.payloads import open_body, prepare, success
from libs.log_throttle import LogThrottle
from libs.messaging.broker import Broker
from libs.messaging.envelope import Envelope, EnvelopeHead, Reply, WireError
from libs.messaging.query_consumer import QueryConsumer
from libs.messaging.replier import Replier
from libs.messaging.topology import QUERIES, QueueType, queries_queue
from libs.persistence.availability import is_away
from libs.runtime.process import Process

QueryHandler = Callable[[Principal, Any, float], Awaitable[Result]]
"""Takes the principal, the query and the deadline (Unix seconds)."""

DRAIN_SECONDS = 5.0
COSTLY_AT_ONCE, COSTLY_OF_TENANT_AT_ONCE, COSTLY_WAITING = 4, 2, 60
"""How many of the table's costly queries run, of all tenants and of one, and how many wait, at most half of them of one
tenant. A further one is answered 503. Each holds a connection to the database for long, or takes thousands of requests
to a provider; the other connections are for commands and cheap queries.
"""
EXPIRED = "expired"
"""The outcome of a query that arrived after its deadline, and got no answer."""


class QueryAnswerer:
    """Answers envelopes with the service's handlers."""

    def __init__(
        self,
        service: str,
        handlers: Mapping[str, QueryHandler],
        sealer: Sealer,
        replier: Replier,
    ) -> None:
        prepare(service, handlers, queries=True)
        self._service = service
        self._queue = queries_queue(service)
        self._rows = {row.name: row for row in operations_of(service) if row.is_query}
        self._handlers = handlers
        self._sealer = sealer
        self._replier = replier
        self._costly = Bulkhead(
            COSTLY_AT_ONCE, COSTLY_WAITING, at_once_of_tenant=COSTLY_OF_TENANT_AT_ONCE
        )
        self._expired = LogThrottle()

    async def answer(self, envelope: Envelope, reply_to: str | None) -> None:
        """Answer the query, unless its deadline has passed. By this process's clock: where that is ahead of the
        caller's, every query may look expired.
        """
        if reply_to is None:
            return
        if (late_seconds := time.time() - envelope.deadline) >= 0:
            self._note_expired(envelope.operation, late_seconds)
            return
        await self._replier.reply(reply_to, await self._reply(envelope))

    def _note_expired(self, operation: str, late_seconds: float) -> None:
        HANDLED_SECONDS.labels(operation, EXPIRED).observe(0)
        if (left_out := self._expired.left_out()) is not None:
            structlog.get_logger("queries").warning(
                "query_expired",
                operation=operation,
                late_seconds=round(late_seconds, 1),
                left_out=left_out,
            )

    async def refuse(self, head: EnvelopeHead, reply_to: str | None, error: BanksideError) -> None:
        """Answer an envelope with the error: nothing is started."""
        if reply_to is not None:
            reply = Reply(head.id, head.message_id, error=WireError.of(error))
            await self._replier.reply(reply_to, reply)

    async def _reply(self, envelope: Envelope) -> Reply:
        started = time.perf_counter()
        request_context.set(RequestContext(envelope.request_id, envelope.principal.actor))
        with processing(
            QUERIES,
            self._service,
            self._queue,
            envelope.operation,
            envelope.message_id,
            envelope.trace,
        ) as span:
            reply = await self._handle(envelope)
            outcome = reply.error.code if reply.error is not None else OK
            if span is not None:
                conclude(span, envelope.operation, outcome)
        note_handled("query_handled", envelope.operation, outcome, time.perf_counter() - started)
        return reply

    async def _handle(self, envelope: Envelope) -> Reply:
        try:
            operation = self._rows[envelope.operation]
            command = open_body(operation, envelope.id, bytes(envelope.body), self._sealer)
            seconds = seconds_for(envelope.deadline - time.time())
            ends_at = time.time() + seconds
            async with asyncio.timeout(seconds), self._slot(operation, envelope.principal):
                result = await self._handlers[operation.name](envelope.principal, command, ends_at)
            return success(operation, envelope.id, envelope.message_id, result, self._sealer)
        except Exception as error:
            answered = answered_error(error, self._rows.get(envelope.operation))
            return Reply(id=envelope.id, to=envelope.message_id, error=WireError.of(answered))

    def _slot(
        self, operation: Operation, principal: Principal
    ) -> AbstractAsyncContextManager[None]:
        return self._costly.slot(principal.tenant) if operation.costly else nullcontext()


def seconds_for(left: float) -> float:
    """How many of the seconds left until the deadline an answer may take. Where few are left, as between services, the
    margin is half of them.
    """
    return max(0.05, left - min(ANSWER_MARGIN_SECONDS, left / 2))


def answered_error(error: Exception, operation: Operation | None) -> BanksideError:
    """The error that the caller of a query gets. An error that the caller must not see is logged.

    A write of an operator that ran out of time, or whose database went away, may have been committed.
    """
    if isinstance(error, BanksideError):
        return error
    is_write = operation is not None and not operation.is_read
    if is_write and (isinstance(error, TimeoutError) or is_away(error)):
        return OutcomePending(LOOK_BEFORE_REPEATING)
    if isinstance(error, TimeoutError):
        return ProviderTimeout()
    structlog.get_logger("queries").error(
        "query_failed",
        operation=operation.name if operation is not None else None,
        exc_info=error,
    )
    return unavailable_or_internal(error)


def unavailable_or_internal(error: Exception) -> BanksideError:
    """503 while the database is away, since nothing was started; 500 for any other error."""
    return Unavailable() if is_away(error) else InternalError()


@asynccontextmanager
async def run_queries(
    process: Process,
    sealer: Sealer,
    broker: Broker,
    handlers: Mapping[str, QueryHandler],
    queue_type: QueueType = "classic",
) -> AsyncIterator[None]:
    """Answer the service's queries during the body, once the broker is started."""
    replier = Replier(process.service)
    answerer = QueryAnswerer(process.service, handlers, sealer, replier)
    consumer = QueryConsumer(process.service, answerer.answer, answerer.refuse, queue_type)
    broker.add(replier)
    broker.add(consumer)
    try:
        yield
    finally:
        await consumer.stop(DRAIN_SECONDS)
