"""Consuming: commands are acked once they are recorded, queries as soon as there is room to answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

import structlog

from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.consumption import HOLD_SECONDS, Consumption
from libs.messaging.deadlines import within
from libs.messaging.delivery import Delivery
from libs.messaging.envelope import (
    Envelope,
    EnvelopeHead,
    NewerEnvelope,
    NotAnEnvelope,
    decode_command,
    decode_queries,
)
from libs.messaging.metrics import MESSAGES_REFUSED
from libs.messaging.poison import SUSPECT_RETURNS, Suspects, returns_of
from libs.messaging.session import Session
from libs.messaging.topology import commands_queue, declare_service, queries_queue

COMMAND_PREFETCH = 64
QUERY_PREFETCH = 16
QUERIES_AT_ONCE = 256
CHECK_SECONDS = 6.0
"""For asking whether commands can be recorded: the database has its own bounds, of 5 s for a connection."""

Accept = Callable[[Envelope, str | None], Coroutine[Any, Any, None]]
"""Records the command (and its reply queue); returns once that is committed, however long the database is away."""

Recordable = Callable[[], Awaitable[None]]
"""Returns when commands can be recorded, as far as can be told without one; raises otherwise."""

Answer = Callable[[Envelope, str | None], Coroutine[Any, Any, None]]
Refuse = Callable[[EnvelopeHead, str | None], Coroutine[Any, Any, None]]
"""Answers an envelope that only a later release understands."""


class _Recording(NamedTuple):
    since: float
    """By the loop's clock."""
    accepting: asyncio.Task[None]


class CommandConsumer:
    """A part of the broker that hands each command to `accept` and acks it afterwards.

    | command | what becomes of it |
    |---|---|
    | recorded | acked; a crash before leaves it with the broker |
    | not to be decoded, of a later version, or never to be recorded | rejected to the dead queue |
    | returned by other deliveries too often | see `libs.messaging.poison` |
    | in hand while nothing can be recorded | after `HOLD_SECONDS` given back, and no other is taken until it can |

    What is given back is still being recorded here, too: recording a command twice has one effect, and another process
    may reach the database when this one does not.
    """

    def __init__(self, service: str, accept: Accept, recordable: Recordable) -> None:
        self._accept = accept
        self._recordable = recordable
        self._queue = commands_queue(service)
        self._consumption = Consumption(
            self._queue,
            partial(declare_service, service=service),
            COMMAND_PREFETCH,
            self._on_message,
            has_dead_queue=True,
            works=lambda: bool(self._recording),
            waits=lambda: bool(self._in_hand) and not self._recording,
            tend=self._tend,
        )
        self._in_hand: set[Delivery] = set()
        self._nothing_in_hand = asyncio.Event()
        self._nothing_in_hand.set()
        self._recording: dict[bytes, _Recording] = {}
        """By body, the oldest first: a message that is delivered again meanwhile is recorded once."""
        self._suspects = Suspects()
        self._log = structlog.get_logger("commands")

    async def attach(self, session: Session) -> None:
        await self._consumption.start(session)

    def detach(self) -> None:
        self._consumption.forget()

    async def stop(self, seconds: float) -> None:
        """Take no more commands; let those taken be recorded and acked, for so long."""
        await self._consumption.stop()
        try:
            async with asyncio.timeout(seconds):
                await self._nothing_in_hand.wait()
        except TimeoutError:
            self._log.warning("commands_left_to_the_broker", count=len(self._in_hand))

    async def _tend(self) -> None:
        """Pause while nothing can be recorded; resume when it can."""
        if self._consumption.is_paused:
            if await self._is_recordable():
                await self._consumption.resume()
            return
        oldest = next(iter(self._recording.values()), None)
        held = (
            oldest is not None and asyncio.get_running_loop().time() - oldest.since > HOLD_SECONDS
        )
        if held and not await self._is_recordable():
            await self._consumption.pause()
            for message in list(self._in_hand):
                await self._settle(message.give_back())

    async def _is_recordable(self) -> bool:
        try:
            await within(CHECK_SECONDS, _awaited(self._recordable), name="recordable")
        except Exception as error:  # in whichever way it cannot be recorded
            self._log.warning("not_recordable", error=repr(error))
            return False
        return True

    async def _on_message(self, message: Delivery) -> None:
        self._in_hand.add(message)
        self._nothing_in_hand.clear()
        try:
            await self._take(message)
        finally:
            self._in_hand.discard(message)
            if not self._in_hand:
                self._nothing_in_hand.set()

    async def _take(self, message: Delivery) -> None:
        try:
            envelope = decode_command(message.body)
        except NewerEnvelope as error:
            self._log.error("envelope_of_a_later_release", cause=str(error))
            await self._refuse(message, "newer_version")
            return
        except NotAnEnvelope as error:
            self._log.error("not_an_envelope", cause=str(error), bytes=len(message.body))
            await self._refuse(message, "unreadable")
            return
        if returns_of(message) < SUSPECT_RETURNS:
            await self._record(message, envelope)
        elif self._suspects.is_poison(message):
            self._log.error("poison", command=envelope.id, returns=returns_of(message))
            await self._refuse(message, "poison")
        else:
            async with self._suspects.alone(message):
                await self._record(message, envelope)

    async def _record(self, message: Delivery, envelope: Envelope) -> None:
        recording = self._recording.get(message.body)
        if recording is None:
            accepting = asyncio.create_task(
                self._accept(envelope, message.properties.reply_to), name=f"accept:{envelope.id}"
            )
            recording = _Recording(asyncio.get_running_loop().time(), accepting)
            self._recording[message.body] = recording
            accepting.add_done_callback(partial(self._recorded, message.body))
        try:
            # Shielded: losing the channel cancels its callbacks, and must not stop a recording half-way.
            await asyncio.shield(recording.accepting)
        except Exception as error:
            # It would fail again, and unanswered it would take up room in the prefetch for ever.
            self._log.error("not_acceptable", command=envelope.id, exc_info=error)
            await self._refuse(message, "not_recordable")
            return
        await self._settle(message.ack(), command=envelope.id)

    def _recorded(self, body: bytes, accepting: asyncio.Task[None]) -> None:
        del self._recording[body]
        self._consumption.moved()
        if not accepting.cancelled():
            accepting.exception()  # told to those whose delivery is still there

    async def _refuse(self, message: Delivery, reason: str) -> None:
        MESSAGES_REFUSED.labels(self._queue, reason).inc()
        await self._settle(message.reject())

    async def _settle(self, settling: Coroutine[Any, Any, None], **what: str) -> None:
        """Whatever does not reach the broker is delivered again."""
        try:
            await settling
        except BROKER_ERRORS as error:
            self._log.warning("ack_lost", **what, error=type(error).__name__)


async def _awaited(check: Recordable) -> None:
    await check()


class QueryConsumer:
    """A part of the broker that answers queries, at most `QUERIES_AT_ONCE` at a time."""

    def __init__(self, service: str, answer: Answer, refuse: Refuse) -> None:
        self._answer = answer
        self._refuse = refuse
        self._queue = queries_queue(service)
        self._consumption = Consumption(
            self._queue,
            partial(declare_service, service=service),
            QUERY_PREFETCH,
            self._on_message,
            has_dead_queue=False,
            works=lambda: self._taken > 0,
            waits=lambda: self._taken > 0,
        )
        self._taken = 0
        self._room = asyncio.Semaphore(QUERIES_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("queries")

    async def attach(self, session: Session) -> None:
        await self._consumption.start(session)

    def detach(self) -> None:
        self._consumption.forget()

    async def stop(self, seconds: float) -> None:
        """Take no more queries; let what is being answered finish, for so long; cancel the rest."""
        await self._consumption.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    async def _on_message(self, message: Delivery) -> None:
        self._taken += 1
        try:
            await self._take(message)
        finally:
            self._taken -= 1
            self._consumption.moved()

    async def _take(self, message: Delivery) -> None:
        reply_to = message.properties.reply_to
        try:
            envelopes = decode_queries(message.body)
            for envelope in envelopes:
                await self._room.acquire()
                self._begin(self._answer(envelope, reply_to), f"query:{envelope.operation}")
        except NewerEnvelope as error:
            self._log.error("envelope_of_a_later_release", cause=str(error))
            MESSAGES_REFUSED.labels(self._queue, "newer_version").inc()
            for head in error.heads:
                await self._room.acquire()
                self._begin(self._refuse(head, reply_to), "query:refused")
        except NotAnEnvelope as error:
            self._log.error("not_an_envelope", cause=str(error), bytes=len(message.body))
            MESSAGES_REFUSED.labels(self._queue, "unreadable").inc()
        try:
            await message.ack(wait=False)
        except BROKER_ERRORS as error:
            self._log.warning("ack_lost", error=type(error).__name__)

    def _begin(self, answering: Coroutine[Any, Any, None], name: str) -> None:
        """Begin an answer for which there is room."""
        task = asyncio.create_task(answering, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()
        self._consumption.moved()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("query_died", task=task.get_name(), exc_info=error)
