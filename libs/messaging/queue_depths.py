"""How many messages wait in the queues of a service, as the broker tells it.

While the leader of a quorum queue does not answer, RabbitMQ answers in its place, after 0.25 s: no messages and no
consumers. This answer therefore means that neither number is known

- of a queue that this process consumes, since it has a consumer;
- of any other, such as a dead queue or that of a paused consumer, when it takes as long.

RabbitMQ answers so at once where the process of the leader is gone, as for the seconds of an election: then a queue
without consumers is taken for empty.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from aio_pika.abc import AbstractChannel

from libs.messaging.broker_errors import BROKER_ERRORS, session_loss_as_error
from libs.messaging.session import Session
from libs.messaging.topology import queues_of

ASK_SECONDS = 3.0
LEADER_SECONDS = 0.2
"""Less than RabbitMQ waits for the leader of a queue before it answers in its place."""


class QueueCounts(NamedTuple):
    ready: int
    """Messages that are not delivered to a consumer."""
    consumers: int
    took_seconds: float

    def are_known(self, *, is_consumed: bool) -> bool:
        """Whether the leader of the queue told them.

        Args:
            is_consumed: this process consumes the queue.
        """
        if self.ready or self.consumers:
            return True
        return not is_consumed and self.took_seconds < LEADER_SECONDS


class QueueDepths:
    """A part of the broker. Its service's consumers are attached before it: they declare the queues."""

    def __init__(self, service: str) -> None:
        self._queues = queues_of(service)
        self._session: Session | None = None
        self._channel: AbstractChannel | None = None
        self._look: asyncio.Task[dict[str, int] | None] | None = None
        """It goes on after the callers of `now` have given up: aiormq closes the channel of a request that is
        cancelled, and with the channel the session would be lost.
        """

    async def attach(self, session: Session) -> None:
        self._session, self._channel = session, await session.channel()

    def detach(self) -> None:
        self._session = self._channel = self._look = None

    async def now(self) -> dict[str, int] | None:
        """Messages that are not delivered to a consumer, by queue; None while the broker does not answer, or the leader
        of one of the queues.
        """
        session, channel = self._session, self._channel
        if session is None or channel is None:
            return None
        look = self._look
        if look is None or look.done():
            look = self._look = asyncio.create_task(
                self._ask(session, channel), name="queue-depths"
            )
        done, _ = await asyncio.wait({look}, timeout=ASK_SECONDS)
        return look.result() if done else None

    async def _ask(self, session: Session, channel: AbstractChannel) -> dict[str, int] | None:
        depths: dict[str, int] = {}
        try:
            with session_loss_as_error():
                for queue in self._queues:
                    is_consumed = session.is_consumed(queue)
                    counts = await counts_of(channel, queue)
                    if not counts.are_known(is_consumed=is_consumed):
                        return None
                    depths[queue] = counts.ready
        except BROKER_ERRORS:
            return None
        return depths


async def counts_of(channel: AbstractChannel, queue: str) -> QueueCounts:
    """Raises ChannelNotFoundEntity where there is no such queue."""
    counts = await _ask_once(channel, queue)
    if counts.are_known(is_consumed=False):
        return counts
    # A busy broker, or this process, may take as long for an empty queue, but hardly twice in a row.
    return await _ask_once(channel, queue)


async def _ask_once(channel: AbstractChannel, queue: str) -> QueueCounts:
    began = time.monotonic()
    declared = (await channel.declare_queue(queue, passive=True)).declaration_result
    took_seconds = time.monotonic() - began
    return QueueCounts(declared.message_count or 0, declared.consumer_count or 0, took_seconds)


async def ready_messages(channel: AbstractChannel, queue: str) -> int:
    """Messages that are not delivered to a consumer; 0 also where they are not known. Raises ChannelNotFoundEntity
    where there is no such queue.
    """
    return (await counts_of(channel, queue)).ready
