"""Consuming queries, which are acked as soon as there is capacity to answer them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

import structlog

from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    BanksideError,
    OutcomePending,
    Unavailable,
)
from libs.contracts.table import BY_NAME
from libs.messaging.consumption import Consumption
from libs.messaging.delivery import Delivery, settle
from libs.messaging.envelope import (
    Envelope,
    EnvelopeHead,
    NewerEnvelope,
    NotAnEnvelope,
    decode_queries,
)
from libs.messaging.metrics import MESSAGES_REFUSED
from libs.messaging.refusing import WRONG_SENDER
from libs.messaging.senders import NO_SENDER, owns_replies, senders_of_queries
from libs.messaging.session import Session
from libs.messaging.topology import QueueType, declare_queries, queries_queue

QUERY_PREFETCH = 16
QUERIES_AT_ONCE = 256
MOST_OF_A_TENANT = QUERIES_AT_ONCE * 3 // 4
"""The most queries of one tenant that are under way, so that others are answered while one tenant's are slow."""
WAITING_OF_A_TENANT = 1024
"""The most queries of one tenant that wait here for `MOST_OF_A_TENANT`. They leave the queue, so that they delay no
other tenant's; the price is that an idle replica cannot take them.
"""

NO_TENANT = ""
"""Of operators and of services that ask for themselves, such as reconciliation; refusals are counted with them."""

Answer = Callable[[Envelope, str | None], Coroutine[Any, Any, None]]
Refuse = Callable[[EnvelopeHead, str | None, BanksideError], Coroutine[Any, Any, None]]
"""Answers an envelope with an error, without opening it."""


class _Query(NamedTuple):
    name: str
    """Its operation, for the log."""
    tenant: str
    answer: Callable[[], Coroutine[Any, Any, None]]
    refuse: Callable[[], Coroutine[Any, Any, None]]


class QueryConsumer:
    """A part of the broker that answers queries, at most `QUERIES_AT_ONCE` at a time.

    | envelope | what is done |
    |---|---|
    | from a sender that the table does not allow, or with replies directed to another | dropped, counted |
    | of an operation that this release does not know | answered `unavailable` to a sender that may ask the service |
    | of a write, in a message that is redelivered: it may have been carried out | answered `outcome_pending` |
    | of a tenant that has `MOST_OF_A_TENANT` under way | waits for one of these, and holds up no other tenant |
    | of one that also has `WAITING_OF_A_TENANT` waiting | answered `unavailable` |
    """

    def __init__(
        self, service: str, answer: Answer, refuse: Refuse, queue_type: QueueType = "classic"
    ) -> None:
        self._answer = answer
        self._refuse = refuse
        self._prefix = f"{service}."
        self._senders = senders_of_queries(service)
        self._askers = frozenset().union(*self._senders.values())
        self._queue = queries_queue(service)
        self._consumption = Consumption(
            self._queue,
            partial(declare_queries, service=service, queue_type=queue_type),
            QUERY_PREFETCH,
            self._on_message,
            has_dead_queue=False,
            works=lambda: self._taken > 0,
            waits=lambda: self._taken > 0,
        )
        self._taken = 0
        self._capacity = asyncio.Semaphore(QUERIES_AT_ONCE)
        self._under_way: Counter[str] = Counter()
        """By tenant, those that wait for capacity included."""
        self._waiting: dict[str, deque[_Query]] = {}
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("queries")

    async def attach(self, session: Session) -> None:
        await self._consumption.attach(session)

    def detach(self) -> None:
        self._consumption.detach()

    async def stop(self, seconds: float) -> None:
        """Take no more queries, and refuse those that wait for `MOST_OF_A_TENANT`: their callers may ask again at once,
        and another process answers. Wait up to `seconds` for the answers under way; cancel the rest.
        """
        until = time.monotonic() + seconds
        self._stopping = True
        await self._consumption.stop()
        waiting = [query for queries in self._waiting.values() for query in queries]
        self._waiting.clear()
        for query in waiting:
            self._start(query.refuse(), "query:refused")
        # What was delivered before begins while others end.
        while self._tasks and (left := until - time.monotonic()) > 0:
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()

    async def _on_message(self, message: Delivery) -> None:
        self._taken += 1
        try:
            await self._take(message)
        finally:
            self._taken -= 1
            self._consumption.progressed()

    async def _take(self, message: Delivery) -> None:
        try:
            envelopes = decode_queries(message.body)
        except NotAnEnvelope as error:
            await self._refuse_undecoded(message, error)
        else:
            for envelope in envelopes:
                await self._take_one(envelope, message)
        await settle(message.ack(wait=False), self._log)

    async def _refuse_undecoded(self, message: Delivery, error: NotAnEnvelope) -> None:
        sender, reply_to = message.properties.user_id, message.properties.reply_to
        # The sender comes first: one that may ask nothing here tells nothing about releases.
        if sender not in self._askers:
            self._log.error("sender_refused", **message.origin)
            MESSAGES_REFUSED.labels(self._queue, WRONG_SENDER).inc()
        elif isinstance(error, NewerEnvelope):
            self._log.error("envelope_of_a_later_release", cause=str(error), **message.origin)
            MESSAGES_REFUSED.labels(self._queue, "newer_version").inc()
            if owns_replies(sender, reply_to):
                for head in error.heads:
                    await self._answer_when_free(self._refusal(head, reply_to, Unavailable()))
        else:
            self._log.error("not_an_envelope", cause=str(error), **message.origin)
            MESSAGES_REFUSED.labels(self._queue, "unreadable").inc()

    async def _take_one(self, envelope: Envelope, message: Delivery) -> None:
        sender, reply_to = message.properties.user_id, message.properties.reply_to
        is_unknown = self._is_unknown(envelope.operation)
        allowed = self._askers if is_unknown else self._senders.get(envelope.operation, NO_SENDER)
        if sender not in allowed or not owns_replies(sender, reply_to):
            self._log.error("sender_refused", sender=sender, operation=envelope.operation)
            MESSAGES_REFUSED.labels(self._queue, WRONG_SENDER).inc()
            return
        head = EnvelopeHead(envelope.id, envelope.message_id, envelope.version)
        refusal = self._refusal(head, reply_to, Unavailable())
        tenant = envelope.principal.tenant
        query = _Query(
            envelope.operation,
            tenant,
            answer=partial(self._answer, envelope, reply_to),
            refuse=refusal.answer,
        )
        if is_unknown:
            MESSAGES_REFUSED.labels(self._queue, "newer_version").inc()
            await self._answer_when_free(refusal)
        elif message.is_redelivered and not BY_NAME[envelope.operation].is_read:
            unknown_outcome = OutcomePending(LOOK_BEFORE_REPEATING)
            await self._answer_when_free(self._refusal(head, reply_to, unknown_outcome))
        elif self._under_way[tenant] < MOST_OF_A_TENANT:
            await self._answer_when_free(query)
        elif self._stopping:
            await self._answer_when_free(refusal)
        elif len(waiting := self._waiting.setdefault(tenant, deque())) < WAITING_OF_A_TENANT:
            waiting.append(query)
        else:
            MESSAGES_REFUSED.labels(self._queue, "tenants_share").inc()
            await self._answer_when_free(refusal)

    def _refusal(self, head: EnvelopeHead, reply_to: str | None, error: BanksideError) -> _Query:
        refuse = partial(self._refuse, head, reply_to, error)
        return _Query("refused", NO_TENANT, answer=refuse, refuse=refuse)

    def _is_unknown(self, operation: str) -> bool:
        """Whether only a later release of this service may have it."""
        return operation.startswith(self._prefix) and operation not in BY_NAME

    async def _answer_when_free(self, query: _Query) -> None:
        self._under_way[query.tenant] += 1
        try:
            await self._capacity.acquire()
        except BaseException:  # the session is lost: the message comes again
            self._leave(query.tenant)
            raise
        self._begin(query)

    def _begin(self, query: _Query) -> None:
        """Begin an answer, for which `_capacity` was acquired."""
        task = self._start(query.answer(), f"query:{query.name}")
        task.add_done_callback(partial(self._answered, query.tenant))

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("query_died", task=task.get_name(), exc_info=error)

    def _answered(self, tenant: str, _: asyncio.Task[None]) -> None:
        if waiting := self._waiting.get(tenant):
            self._begin(waiting.popleft())
        else:
            self._waiting.pop(tenant, None)
            self._leave(tenant)
            self._capacity.release()
        self._consumption.progressed()

    def _leave(self, tenant: str) -> None:
        self._under_way[tenant] -= 1
        if not self._under_way[tenant]:
            del self._under_way[tenant]
