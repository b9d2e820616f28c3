"""Sending replies: in batches to each process, or singly and confirmed where something depends on the arrival."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

import structlog
from aio_pika.exceptions import ChannelInvalidStateError, PublishError
from cachetools import LRUCache

from libs.batching import Batcher, TooManyWaiting
from libs.contracts.errors import InternalError
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.envelope import Reply, WireError, encode
from libs.messaging.publishing import TRANSIENT, Properties, Publisher
from libs.messaging.senders import askers_of
from libs.messaging.session import Session
from libs.messaging.topology import REPLIES, replies_queues

REPLY_BATCH = 64
REPLY_SECONDS = 5.0
REPLY_QUEUES = 1024
BODY_BYTES = 1024 * 1024
LARGEST_REPLY_BYTES = 12 * 1024 * 1024
"""Below RabbitMQ's largest message (16 MiB), since a larger one ends the session."""


class NotKnownWhetherRouted(Exception):
    """The reply was written; whether the queue of its caller took it is not known."""


class Replier:
    """A part of the broker that sends replies, each once: for a lost one, its caller has a deadline.

    Nothing is sent to the queue of a service that does not ask `service`: the broker would end the session over it. A
    command that an earlier release stored may name such a queue.
    """

    def __init__(self, service: str) -> None:
        self._asker = re.compile("|".join(map(replies_queues, askers_of(service))))
        self._unconfirmed: Publisher | None = None
        self._confirmed: Publisher | None = None
        self._batchers: LRUCache[str, Batcher[Reply, None]] = LRUCache(REPLY_QUEUES)
        self._log = structlog.get_logger("replier")

    async def attach(self, session: Session) -> None:
        self._unconfirmed = await session.publisher(confirms=False)
        self._confirmed = await session.publisher(confirms=True)

    def detach(self) -> None:
        self._unconfirmed = None
        self._confirmed = None

    async def reply(self, reply_to: str, reply: Reply) -> None:
        """Send it, or log that it could not be sent."""
        if not self._asker.fullmatch(reply_to):
            self._log.warning("reply_not_sent", command=reply.id, error="not a queue of an asker")
            return
        try:
            await self._batcher(reply_to).submit(reply)
        except (*BROKER_ERRORS, TooManyWaiting) as error:
            self._log.warning("reply_not_sent", command=reply.id, error=type(error).__name__)

    async def reply_confirmed(self, reply_to: str, reply: Reply, seconds: float) -> bool:
        """Send a reply on whose arrival something depends.

        Returns:
            True: the queue of its caller took it in this time. False: certainly not, since there is no such queue or
            nothing was written.

        Raises:
            NotKnownWhetherRouted: neither is certain.
        """
        publisher = self._confirmed
        if publisher is None or seconds <= 0 or not self._asker.fullmatch(reply_to):
            return False
        try:
            async with asyncio.timeout(min(seconds, REPLY_SECONDS)):
                for body in _bodies([reply]):
                    await publisher.publish(REPLIES, reply_to, body, _properties())
        except (PublishError, ChannelInvalidStateError):
            return False  # returned, or never written
        except Exception as error:
            # Any other failure may have come after the reply was written.
            raise NotKnownWhetherRouted(type(error).__name__) from error
        return True

    def _batcher(self, reply_to: str) -> Batcher[Reply, None]:
        batcher = self._batchers.get(reply_to)
        if batcher is None:

            async def run(batch: list[Reply]) -> list[None]:
                for body in _bodies(batch):
                    await self._publish(reply_to, body)
                return [None] * len(batch)

            batcher = Batcher(run, name=f"reply:{reply_to}", limit=REPLY_BATCH)
            self._batchers[reply_to] = batcher
        return batcher

    async def _publish(self, reply_to: str, body: bytes) -> None:
        publisher = self._unconfirmed
        if publisher is None:
            raise ConnectionError("no session with the broker")
        async with asyncio.timeout(REPLY_SECONDS):
            await publisher.publish(REPLIES, reply_to, body, _properties())


def _properties() -> Properties:
    return Properties(content_type="application/json", delivery_mode=TRANSIENT)


def _bodies(replies: Sequence[Reply]) -> Iterator[bytes]:
    """The replies as arrays of bounded size: the broker ends the connection over a message that is too large."""
    encoded: list[bytes] = []
    size = 0
    for reply in replies:
        one = encode(reply)
        if len(one) > LARGEST_REPLY_BYTES:
            error = InternalError("The answer is too large.")
            one = encode(Reply(id=reply.id, to=reply.to, error=WireError.of(error)))
        if encoded and size + len(one) > BODY_BYTES:
            yield b"[" + b",".join(encoded) + b"]"
            encoded, size = [], 0
        encoded.append(one)
        size += len(one)
    yield b"[" + b",".join(encoded) + b"]"
