"""Consuming: commands are acked once they are recorded, queries as soon as there is room to answer them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from libs.messaging.broker import BROKER_ERRORS, Session
from libs.messaging.consumption import Consumption
from libs.messaging.delivery import Delivery
from libs.messaging.envelope import Envelope, NotAnEnvelope, decode_command, decode_queries
from libs.messaging.topology import commands_queue, declare_service, queries_queue

COMMAND_PREFETCH = 64
QUERY_PREFETCH = 16
QUERIES_AT_ONCE = 256

Accept = Callable[[Envelope, str | None], Coroutine[Any, Any, None]]
"""Records the command (and its reply queue); returns once that is committed, however long the database is away."""

Answer = Callable[[Envelope, str | None], Coroutine[Any, Any, None]]


class CommandConsumer:
    """A part of the broker that hands each command to `accept` and acks it afterwards.

    What cannot be decoded is rejected to the dead queue. While `accept` waits for the database, at most the
    prefetch is held and the rest stays in the queue. A crash before the ack leaves the message with the broker.
    """

    def __init__(self, service: str, accept: Accept) -> None:
        self._service = service
        self._accept = accept
        self._consumption = Consumption()
        self._taken = 0
        self._nothing_taken = asyncio.Event()
        self._nothing_taken.set()
        self._log = structlog.get_logger("commands")

    async def attach(self, session: Session) -> None:
        await self._consumption.start(
            session,
            partial(declare_service, service=self._service),
            commands_queue(self._service),
            COMMAND_PREFETCH,
            self._on_message,
        )

    def detach(self) -> None:
        self._consumption.forget()

    async def stop(self, seconds: float) -> None:
        """Take no more commands; let those taken be recorded and acked, for so long."""
        await self._consumption.stop()
        try:
            async with asyncio.timeout(seconds):
                await self._nothing_taken.wait()
        except TimeoutError:
            self._log.warning("commands_left_to_the_broker", count=self._taken)

    async def _on_message(self, message: Delivery) -> None:
        self._taken += 1
        self._nothing_taken.clear()
        try:
            await self._take(message)
        finally:
            self._taken -= 1
            if not self._taken:
                self._nothing_taken.set()

    async def _take(self, message: Delivery) -> None:
        try:
            envelope = decode_command(message.body)
        except NotAnEnvelope as error:
            self._log.error("not_an_envelope", cause=str(error), bytes=len(message.body))
            await self._settle(message.reject())
            return
        # Shielded: losing the channel cancels its callbacks, and must not stop a recording half-way.
        accepting = asyncio.create_task(
            self._accept(envelope, message.properties.reply_to), name=f"accept:{envelope.id}"
        )
        try:
            await asyncio.shield(accepting)
        except Exception as error:
            # It would fail again, and unanswered it would take up room in the prefetch for ever.
            self._log.error("not_acceptable", command=envelope.id, exc_info=error)
            await self._settle(message.reject(), command=envelope.id)
            return
        await self._settle(message.ack(), command=envelope.id)

    async def _settle(self, settling: Coroutine[Any, Any, None], **what: str) -> None:
        """Whatever does not reach the broker is delivered again."""
        try:
            await settling
        except BROKER_ERRORS as error:
            self._log.warning("ack_lost", **what, error=type(error).__name__)


class QueryConsumer:
    """A part of the broker that answers queries, at most `QUERIES_AT_ONCE` at a time."""

    def __init__(self, service: str, answer: Answer) -> None:
        self._service = service
        self._answer = answer
        self._consumption = Consumption()
        self._room = asyncio.Semaphore(QUERIES_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("queries")

    async def attach(self, session: Session) -> None:
        await self._consumption.start(
            session,
            partial(declare_service, service=self._service),
            queries_queue(self._service),
            QUERY_PREFETCH,
            self._on_message,
        )

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
        try:
            envelopes = decode_queries(message.body)
        except NotAnEnvelope as error:
            self._log.error("not_an_envelope", cause=str(error), bytes=len(message.body))
            envelopes = []
        for envelope in envelopes:
            await self._room.acquire()
            task = asyncio.create_task(
                self._answer(envelope, message.properties.reply_to),
                name=f"query:{envelope.operation}",
            )
            self._tasks.add(task)
            task.add_done_callback(self._answered)
        try:
            await message.ack(wait=False)
        except BROKER_ERRORS as error:
            self._log.warning("ack_lost", error=type(error).__name__)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("query_died", task=task.get_name(), exc_info=error)
