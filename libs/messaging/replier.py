"""Sending replies: those for one process that are ready together travel together."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import structlog
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractExchange

from libs.messaging.batching import Batcher, TooManyWaiting
from libs.messaging.broker import BROKER_ERRORS, Session
from libs.messaging.envelope import Reply, encode

REPLY_BATCH = 64
REPLY_SECONDS = 5.0
REPLY_QUEUES = 1024


class Replier:
    """A part of the broker that answers. A reply is worth sending once: a lost one is what deadlines are for."""

    def __init__(self) -> None:
        self._exchange: AbstractExchange | None = None
        self._batchers: OrderedDict[str, Batcher[Reply, None]] = OrderedDict()
        self._log = structlog.get_logger("replier")

    async def attach(self, session: Session) -> None:
        channel = await session.channel(confirms=False)
        self._exchange = channel.default_exchange

    def detach(self) -> None:
        self._exchange = None

    async def reply(self, reply_to: str, reply: Reply) -> None:
        """Send it, or log that it could not be sent."""
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                await self._batcher(reply_to).submit(reply)
        except (*BROKER_ERRORS, TooManyWaiting) as error:
            self._log.warning("reply_not_sent", command=reply.id, error=type(error).__name__)

    def _batcher(self, reply_to: str) -> Batcher[Reply, None]:
        batcher = self._batchers.get(reply_to)
        if batcher is None:

            async def publish(batch: list[Reply]) -> list[None]:
                if self._exchange is None:
                    raise ConnectionError("no session with the broker")
                message = Message(
                    encode(batch),
                    content_type="application/json",
                    delivery_mode=DeliveryMode.NOT_PERSISTENT,
                )
                await self._exchange.publish(message, reply_to, mandatory=False)
                return [None] * len(batch)

            batcher = Batcher(publish, name=f"reply:{reply_to}", limit=REPLY_BATCH)
            self._batchers[reply_to] = batcher
            if len(self._batchers) > REPLY_QUEUES:
                self._batchers.popitem(last=False)
        return batcher
