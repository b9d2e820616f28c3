"""Noticing a consumer to which the broker assigns messages, and none of them arrives.

In a cluster, a consumer gets the messages of a quorum queue from the queue's member on its own node. Up to RabbitMQ
4.0.7 a member may fall behind for good after a network partition (rabbitmq/ra, pull request 516). The leader goes on
assigning messages to consumers at that node, up to their prefetch; none of them arrives, and the queue looks empty.

So a consumer to which nothing was delivered for a while publishes a probe for each consumer of its queue, which are
served in turn, and one more: at least one is for itself. If nothing arrives, its session is replaced. The broker
then returns what it had assigned, and the next session is at another node, or will be: each session probes when it
first watches its consumers, since it may be at the same node again.
"""

from __future__ import annotations

import asyncio
import math

from aio_pika.abc import AbstractChannel

from libs.messaging.delivery import Delivery
from libs.messaging.publishing import TRANSIENT, Properties, Publisher
from libs.messaging.queue_depths import counts_of
from libs.messaging.session import Session
from libs.messaging.topology import PROBES

IDLE_SECONDS = 2.0
"""Without a delivery, before probes are sent."""
UNANSWERED_SECONDS = 2.0
"""As the session watches once a second, an unserved consumer is noticed 6 s after the last delivery, or 4 s after the
session began.
"""

PROBE = "bankside.probe"


def is_probe(message: Delivery) -> bool:
    return message.properties.message_type == PROBE


class Probe:
    """The probing of one consumer in one session."""

    def __init__(self, queue: str, channel: AbstractChannel, publisher: Publisher) -> None:
        self._queue = queue
        self._channel = channel
        self._publisher = publisher
        self._idle_since = -math.inf
        self._sent_at: float | None = None

    @classmethod
    async def of(cls, session: Session, channel: AbstractChannel, queue: str) -> Probe:
        found = await channel.get_queue(queue, ensure=False)
        await found.bind(PROBES, routing_key=queue)
        return cls(queue, channel, await session.publisher(confirms=False))

    def served(self) -> None:
        """Note that something was delivered, or cannot be: the consumer is at work."""
        self._idle_since, self._sent_at = asyncio.get_running_loop().time(), None

    async def send_when_idle(self) -> bool:
        """Send probes after a time without a delivery. Returns whether nothing was delivered since, for too long."""
        now = asyncio.get_running_loop().time()
        if self._sent_at is not None:
            return now - self._sent_at >= UNANSWERED_SECONDS
        if now - self._idle_since >= IDLE_SECONDS:
            consumers = (await counts_of(self._channel, self._queue)).consumers
            if consumers:  # 0: not known
                self._sent_at = now
                await self._send(consumers + 1)  # one may have come since
        return False

    async def _send(self, count: int) -> None:
        for _ in range(count):
            properties = Properties(message_type=PROBE, delivery_mode=TRANSIENT)
            await self._publisher.publish(PROBES, self._queue, b"", properties)
