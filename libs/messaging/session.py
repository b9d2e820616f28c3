"""A session: one connection to RabbitMQ with its channels and consumers, watched until one of them is lost.

A session is lost when

- its connection, one of its channels or one of its consumers is lost;
- RabbitMQ does not answer a request within `ANSWER_SECONDS`, so that a connection that fails in either direction is
  noticed within 15 s;
- RabbitMQ confirms nothing of what is published for `UNCONFIRMED_SECONDS`;
- one of its consumers stalls (`libs.messaging.consumption`), or is delivered nothing (`libs.messaging.probing`).

While RabbitMQ lacks memory or disk it reads nothing from a connection that has published, and so answers and confirms
nothing on it. A session without consumers, such as a gateway's, then lasts: it knows that it is blocked, which the next
one would not before it had published. One with consumers ends: RabbitMQ reads no ack of theirs either.

`libs.messaging.broker.Broker` then ends the connection, which ends every wait on it, and builds another session.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Protocol

import structlog
from aio_pika.abc import AbstractChannel

from libs.messaging.connection import Connection
from libs.messaging.deadlines import within
from libs.messaging.metrics import CONSUMER_RESTARTS
from libs.messaging.publishing import Publisher, underlying

WATCH_SECONDS = 1.0
"""The period of the watch, which looks after confirms and consumers."""
LATE_WATCH_SECONDS = 2.0
"""A watch that is this late says that the process stood still: answers may wait in its socket and are handled first."""
WATCHES_PER_CHECK = 5
"""In every fifth watch, RabbitMQ is asked for an answer, and consumers are checked for stalls."""
ANSWER_SECONDS = 10.0
UNCONFIRMED_SECONDS = 5.0
"""Longer than a queue of a cluster needs for another leader, and shorter than callers wait. On a connection that was
made while another node stood still, RabbitMQ 3.10 may never confirm, and answers all else.
"""
CONFIRMS_NOTHING = "the broker confirms nothing"
LATE_SECONDS = 4.0
"""An answer that is this late makes the session count as not ready, before it is lost."""


class Watched(Protocol):
    """A consumer, as its session watches it."""

    queue: str

    @property
    def is_consuming(self) -> bool:
        """Whether it has a consumer at RabbitMQ."""
        ...

    async def begin(self) -> None:
        """Begin to consume, unless it is paused."""
        ...

    def check(self) -> None:
        """Raises ConnectionError while it does not consume."""
        ...

    async def pause_or_resume(self) -> None:
        """Pause or resume consuming."""
        ...

    async def probe(self) -> bool:
        """Send itself probes after a time without a delivery. Returns whether RabbitMQ delivers nothing, these
        included.
        """
        ...

    async def measure(self, channel: AbstractChannel) -> None:
        """Ask RabbitMQ, on this channel, what waits in its queue."""
        ...

    def is_stalled(self) -> bool:
        """Whether it made no progress for too long while messages waited, as `measure` has seen it."""
        ...


class Session:
    def __init__(
        self,
        connection: Connection,
        user: str,
        *,
        probes: bool = False,
        unconfirmed_seconds: float = UNCONFIRMED_SECONDS,
    ) -> None:
        self.probes = probes
        self._unconfirmed_seconds = unconfirmed_seconds
        self._connection = connection
        self.user = user
        """The process's user at RabbitMQ, which has the name of its service."""
        self._watched: list[Watched] = []
        self._publishers: list[Publisher] = []
        self._channels: list[AbstractChannel] = []
        """aio-pika's channels, kept as long as the session lives: publishers use the aiormq channels underneath."""
        loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[str] = loop.create_future()
        self._answered_at = loop.time()
        self.is_blocked = False
        """RabbitMQ said, up to `WATCH_SECONDS` ago, that it reads nothing from the session: what is published now would
        wait until there is memory and disk again.
        """
        self.is_dead = False
        """RabbitMQ did not answer: the connection is ended without a polite close."""
        self._log = structlog.get_logger("broker")
        connection.close_callbacks.add(lambda *_: self.lose("connection closed"))

    def lose(self, reason: str) -> None:
        """End the session; `Broker` then builds another."""
        if not self._lost.done():
            self._lost.set_result(reason)

    async def until_lost(self) -> str:
        return await self._lost

    async def channel(self) -> AbstractChannel:
        """A channel to declare and consume on; its loss, or that of a consumer on it, ends the session."""
        return await self._channel(confirms=False)

    async def publisher(self, *, confirms: bool) -> Publisher:
        """A channel to publish on; its loss ends the session."""
        channel = await self._channel(confirms=confirms)
        publisher = Publisher(await underlying(channel), self.user, confirms=confirms)
        self._publishers.append(publisher)
        return publisher

    async def _channel(self, *, confirms: bool) -> AbstractChannel:
        opened = self._connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
        channel = await opened
        channel.close_callbacks.add(lambda *_: self.lose("channel closed"))
        cancelled = (await underlying(channel)).on_consumer_cancel_callbacks
        cancelled.add(lambda _: self.lose("consumer cancelled"))
        self._channels.append(channel)
        return channel

    def watch(self, consumer: Watched) -> None:
        """Watch a consumer as long as the session lives. It consumes once the session begins."""
        self._watched.append(consumer)

    def is_consumed(self, queue: str) -> bool:
        """Whether a consumer of this session consumes the queue: none does while it is paused."""
        return any(each.queue == queue and each.is_consuming for each in self._watched)

    async def begin(self) -> None:
        """Have all consumers consume, once every part of the process is attached. A session that ends before this takes
        no message, and so returns none: returns count towards taking a message for poison.
        """
        for consumer in self._watched:
            await consumer.begin()

    def check(self) -> None:
        """Readiness: raises ConnectionError when RabbitMQ does not answer, blocks publishers, or a consumer does not
        consume.
        """
        if self.is_blocked:
            raise ConnectionError("the broker blocks publishers, for lack of memory or disk")
        if asyncio.get_running_loop().time() - self._answered_at > (
            WATCH_SECONDS * WATCHES_PER_CHECK + LATE_SECONDS
        ):
            raise ConnectionError("the broker does not answer")
        for consumer in self._watched:
            consumer.check()

    async def watch_until_lost(self) -> None:
        """Watch the session until it is lost; a fault in here ends it as well."""
        try:
            channel = await within(ANSWER_SECONDS, self.channel(), name="open-watch")
            loop = asyncio.get_running_loop()
            for round_ in itertools.count(1):
                began = loop.time()
                await asyncio.sleep(WATCH_SECONDS)
                stood_still = loop.time() - began > WATCH_SECONDS + LATE_WATCH_SECONDS
                await self._note_blocked()
                if self.is_blocked and not self._watched:
                    continue  # aiormq ends the connection without heartbeats, which RabbitMQ still sends
                unconfirmed = max((p.measure_unconfirmed() for p in self._publishers), default=0.0)
                if unconfirmed > self._unconfirmed_seconds and not stood_still:
                    self.lose(CONFIRMS_NOTHING)
                for consumer in self._watched:
                    await within(
                        ANSWER_SECONDS, consumer.pause_or_resume(), name=f"pause:{consumer.queue}"
                    )
                    if stood_still:
                        continue
                    if await within(
                        ANSWER_SECONDS, consumer.probe(), name=f"probe:{consumer.queue}"
                    ):
                        self._replace(consumer, "consumer_unserved", "is delivered nothing")
                if round_ % WATCHES_PER_CHECK == 0:
                    await self._check_answer_and_stalls(channel)
        except TimeoutError as error:
            self.is_dead = True
            self.lose(str(error) or "no answer in time")
        except Exception as error:
            self._log.warning("watch_failed", error=repr(error))
            self.lose("the watch failed")

    async def _note_blocked(self) -> None:
        was_blocked, self.is_blocked = self.is_blocked, await self._connection.is_blocked()
        if self.is_blocked and not was_blocked:
            self._log.warning("publishers_blocked")
        elif was_blocked and not self.is_blocked:
            self._log.info("publishers_not_blocked")
            self._answered_at = asyncio.get_running_loop().time()
            for publisher in self._publishers:
                publisher.begin_to_measure()

    async def _check_answer_and_stalls(self, channel: AbstractChannel) -> None:
        await within(ANSWER_SECONDS, channel.set_qos(prefetch_count=1), name="answer")
        self._answered_at = asyncio.get_running_loop().time()
        for consumer in self._watched:
            await within(
                ANSWER_SECONDS, consumer.measure(channel), name=f"measure:{consumer.queue}"
            )
            if consumer.is_stalled():
                self._replace(consumer, "consumer_stalled", "stood still")

    def _replace(self, consumer: Watched, event: str, why: str) -> None:
        CONSUMER_RESTARTS.labels(consumer.queue).inc()
        self._log.error(event, queue=consumer.queue)
        self.lose(f"the consumer of {consumer.queue} {why}")
