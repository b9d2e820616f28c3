"""Events from RabbitMQ: a consumer of a durable queue, with a user of its own (`deploy/rabbitmq/event_consumer.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from cachetools import LRUCache

from libs.contracts.events import Event
from libs.messaging.broker import Broker
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.delivery import Delivery, consume
from libs.messaging.event_message import NewerEvent, NotAnEvent, decode_event
from libs.messaging.session import Session

PREFETCH = 100
REMEMBERED = 10_000
"""Ids of handled events: more than can be delivered again when a session is lost, which is what was not acked."""

Handle = Callable[[Event], Awaitable[None]]
"""Handles one event. It returns once the effect is stored, since the broker then deletes the event."""


class EventQueueConsumer:
    """Hands each event of a queue to `handle`, one at a time, in the order of the queue, and acks it afterwards.

    | what happens | what becomes of the event |
    |---|---|
    | `handle` returns | acked |
    | `handle` raises | `run` ends with that error; this event and those after it go back to the queue, in their order |
    | the broker restarts, or the connection is lost | `run` connects again; what was not acked is delivered again |
    | it was handled by this consumer and is delivered again | acked, and not handled again |
    | the process ended between `handle` and the ack | handled again by the next one: store `event_id` with the effect |
    | its sender does not emit its type, or it cannot be read | dropped, with a line in the log |

    Args:
        url: `amqp://user:password@host:port/vhost`, or `amqps:` for TLS, of the consumer's own user.
        queue: that the operator has made for this user. One consumer at a time keeps the order.
        ca_file: the CA of the broker's certificate, instead of those that the system trusts.
    """

    def __init__(self, url: str, queue: str, handle: Handle, *, ca_file: str | None = None) -> None:
        self._queue = queue
        self._handle = handle
        self._broker = Broker(url, queue, ca_file=ca_file)
        self._broker.add(self)
        self._session: Session | None = None
        self._arrived: asyncio.Queue[Delivery] = asyncio.Queue()
        """At most `PREFETCH`, all of the session."""
        self._handled: LRUCache[str, None] = LRUCache(REMEMBERED)
        self._log = structlog.get_logger("event_queue")

    async def attach(self, session: Session) -> None:
        """Consume on this session; called by the connection."""

        async def arrived(delivery: Delivery) -> None:
            if self._session is session:
                self._arrived.put_nowait(delivery)

        self._session = session
        channel = await session.channel()
        await channel.set_qos(prefetch_count=PREFETCH)
        await consume(channel, self._queue, arrived)

    def detach(self) -> None:
        """The session ended: what it delivered is delivered again by the next one."""
        self._session = None
        while not self._arrived.empty():
            self._arrived.get_nowait()

    async def run(self) -> None:
        """Work until it is cancelled.

        Raises:
            NewerEvent: an event is of a later release than this package; it stays in the queue.
            Exception: what `handle` raised.
        """
        async with self._broker.open():
            await self._broker.start()
            while True:
                await self._take(await self._arrived.get())

    async def _take(self, delivery: Delivery) -> None:
        try:
            event = decode_event(delivery.properties, delivery.body)
        except NewerEvent:
            raise
        except NotAnEvent as error:
            self._log.error("event_dropped", queue=self._queue, cause=str(error))
            await self._settle(delivery.reject())
            return
        if event.event_id not in self._handled:
            await self._handle(event)
            self._handled[event.event_id] = None
        await self._settle(delivery.ack())

    async def _settle(self, settling: Awaitable[None]) -> None:
        try:
            await settling
        except BROKER_ERRORS as error:
            # The session is lost, and the event delivered again: then it is acked without being handled.
            self._log.info("event_not_settled", queue=self._queue, error=type(error).__name__)
