"""How many messages wait in the queues of a service, as the broker tells it.

While the leader of a quorum queue does not answer, RabbitMQ answers in its place, after 0.25 s: no messages and no
consumers. Of a queue that has to have a consumer, this answer therefore means that neither number is known.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from aio_pika.abc import AbstractChannel

from libs.messaging.broker_errors import BROKER_ERRORS, session_loss_as_error
from libs.messaging.session import Session
from libs.messaging.topology import consumed_queues, queues_of

ASK_SECONDS = 3.0


class QueueCounts(NamedTuple):
    ready: int
    """Messages that are not delivered to a consumer."""
    consumers: int


UNKNOWN_IF_CONSUMED = QueueCounts(0, 0)
"""Of a queue that has to have a consumer: its leader does not answer. A service that is paused has none, either."""


class QueueDepths:
    """A part of the broker. Its service's consumers are attached before it: they declare the queues."""

    def __init__(self, service: str) -> None:
        self._queues = queues_of(service)
        self._consumed = frozenset(consumed_queues(service))
        self._channel: AbstractChannel | None = None
        self._look: asyncio.Task[dict[str, int] | None] | None = None
        """It goes on after the callers of `now` have given up: aiormq closes the channel of a request that is
        cancelled, and with the channel the session would be lost.
        """

    async def attach(self, session: Session) -> None:
        self._channel = await session.channel()

    def detach(self) -> None:
        self._channel = self._look = None

    async def now(self) -> dict[str, int] | None:
        """Messages that are not delivered to a consumer, by queue; None while the broker does not answer, or the leader
        of one of the queues.
        """
        channel = self._channel
        if channel is None:
            return None
        look = self._look
        if look is None or look.done():
            look = self._look = asyncio.create_task(self._ask(channel), name="queue-depths")
        done, _ = await asyncio.wait({look}, timeout=ASK_SECONDS)
        return look.result() if done else None

    async def _ask(self, channel: AbstractChannel) -> dict[str, int] | None:
        try:
            with session_loss_as_error():
                counts = {queue: await counts_of(channel, queue) for queue in self._queues}
        except BROKER_ERRORS:
            return None
        if any(counts[queue] == UNKNOWN_IF_CONSUMED for queue in self._consumed):
            return None
        return {queue: count.ready for queue, count in counts.items()}


async def counts_of(channel: AbstractChannel, queue: str) -> QueueCounts:
    """Raises ChannelNotFoundEntity where there is no such queue."""
    declared = (await channel.declare_queue(queue, passive=True)).declaration_result
    return QueueCounts(declared.message_count or 0, declared.consumer_count or 0)


async def ready_messages(channel: AbstractChannel, queue: str) -> int:
    """Messages that are not delivered to a consumer. Raises ChannelNotFoundEntity where there is no such queue."""
    return (await counts_of(channel, queue)).ready
