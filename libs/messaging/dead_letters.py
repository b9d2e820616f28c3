"""Dead letters: commands and events that were refused, kept by the broker until an operator decides.

Looking takes letters from the front of a queue, some at a time, and requeues all of them at once, which leaves a quorum
queue in its order; those that one reader has taken are not seen by another until then. A letter is removed by an ack,
once what has to come before it is recorded: a crash in between leaves both. So a letter that is replayed may be
accepted again (`libs.handling.replaying`), and every message has one effect however often it is accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelNotFoundEntity

from libs.messaging.broker import HEARTBEAT_SECONDS
from libs.messaging.broker_errors import session_loss_as_error
from libs.messaging.connection import connect
from libs.messaging.deadlines import within
from libs.messaging.envelope import Envelope, NotAnEnvelope, decode_command
from libs.messaging.message_ids import time_within
from libs.messaging.publishing import Properties
from libs.messaging.queue_depths import ready_messages
from libs.messaging.refusing import BECAUSE, DIED_AT, REASON, as_refused

CONNECT_SECONDS = 10.0
WORK_SECONDS = 60.0
MAX_LOOKED_AT = 1000
"""Letters of one queue, from its front."""
MAX_BYTES = 64 * 1024 * 1024
"""Of their bodies; the first letter beyond is the last one that is looked at."""
TOGETHER = 50
"""Letters that are in memory at once, and that are removed within one `WORK_SECONDS`."""
READY_POLLS = 50
READY_POLL_SECONDS = 0.02
"""A quorum queue has requeued letters back after a moment."""

_NAME = re.compile(r"[!-~]{1,100}")
"""A message id that an operator can be shown, and can type."""

Pages = AsyncGenerator[list[AbstractIncomingMessage], None]


class NotReplayable(Exception):
    """The letter can never be accepted; the text says why. It stays where it is."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter.

    Args:
        id: unlike that of every letter with another sender or another content, whatever message id it has: one service
            may have copied the message id of another's letter.
        envelope: of a command; None of an event, and of a command that cannot be read.
        event_type: of an event, as it says itself.
        reason: for which it was refused, as in `bankside_messages_refused_total`, or the broker's: `rejected`.
        because: the sentence of the consumer that refused it (`libs.messaging.refusing`).
        properties: as its sender set them; of these the broker has checked `user_id`, the sender.
        body: as delivered, its sensitive fields sealed; cut off where only a part was asked for.
    """

    queue: str
    id: str
    envelope: Envelope | None
    event_type: str | None
    reason: str | None
    because: str | None
    sent_at: datetime | None
    died_at: datetime | None
    properties: Properties = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def sender(self) -> str | None:
        return self.properties.user_id

    def has_id(self, wanted: str) -> bool:
        """By its own id, message id or command id; several letters can have one of the latter two."""
        return wanted in (self.id, self.properties.message_id) or (
            self.envelope is not None and wanted == self.envelope.id
        )


@dataclass(frozen=True, slots=True)
class Removed:
    """Letters that are gone from the queue, and those that cannot be removed in this way, with the reasons; all without
    their bodies.
    """

    removed: list[DeadLetter]
    left: list[tuple[DeadLetter, str]]


class DeadLetters:
    """The dead queues of one broker. Every method raises TimeoutError after `WORK_SECONDS`, which `remove` has for
    each of its pages.
    """

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection

    async def look(
        self,
        queue: str,
        wanted: Callable[[DeadLetter], bool] = lambda _: True,
        *,
        limit: int = MAX_LOOKED_AT,
        body_bytes: int = 0,
    ) -> list[DeadLetter]:
        """Letters among the first of a queue, oldest first; they stay there, in their order.

        Args:
            limit: the most letters that are returned.
            body_bytes: of each body that is returned.
        """
        found: list[DeadLetter] = []
        together = min(limit, TOGETHER)
        async with asyncio.timeout(WORK_SECONDS), self._front(queue, together) as pages:
            async for page in pages:
                for letter in (letter_of(queue, message) for message in page):
                    if len(found) < limit and wanted(letter):
                        found.append(replace(letter, body=letter.body[:body_bytes]))
                if len(found) == limit:
                    break
        return found

    async def remove(
        self,
        queue: str,
        wanted: Callable[[DeadLetter], bool],
        before: Callable[[DeadLetter], Awaitable[None]],
    ) -> Removed:
        """Remove letters, once `before` has returned for each; the others stay in their order.

        Args:
            before: has the message accepted anew, or records that it is discarded. Raises NotReplayable for one that
                cannot be. Another error of its own ends it: the letters that were removed until then are gone.
        """
        done = Removed([], [])
        async with self._front(queue, TOGETHER) as pages:
            async for page in pages:
                async with asyncio.timeout(WORK_SECONDS):
                    for message in page:
                        letter = letter_of(queue, message)
                        if wanted(letter):
                            await _remove_one(letter, message, before, done)
        return done

    @asynccontextmanager
    async def _front(self, queue: str, together: int) -> AsyncIterator[Pages]:
        """Pages of messages from the front; those not acked in the body are requeued together. When this ends they are
        in the queue again, unless another reader has taken them.
        """
        left = _Left()
        async with AsyncExitStack() as opened:
            async with asyncio.timeout(WORK_SECONDS):
                channel = self._connection.channel(publisher_confirms=False)
                opened.push_async_callback(channel.close)
                await channel.initialize()
                try:
                    source = await channel.get_queue(queue, ensure=True)
                except ChannelNotFoundEntity:  # its service was never started
                    source = None
            pages = _pages(source, left, together)
            try:
                yield pages
            finally:
                await pages.aclose()
                left.end_page()
                if left.last is not None:
                    async with asyncio.timeout(WORK_SECONDS):
                        await left.last.nack(multiple=True, requeue=True)
                        await _until_ready(channel, queue, left.count)


class _Left:
    """Messages that were taken and not acked: their number, the last of them, and the page that is looked at."""

    def __init__(self) -> None:
        self.count = 0
        self.last: AbstractIncomingMessage | None = None
        self.page: list[AbstractIncomingMessage] = []

    def end_page(self) -> None:
        for message in self.page:
            if not message.processed:
                self.count += 1
                self.last = message
        self.page = []


async def _pages(source: AbstractQueue | None, left: _Left, together: int) -> Pages:
    looked_at = in_bytes = 0
    while source is not None and looked_at < MAX_LOOKED_AT and in_bytes <= MAX_BYTES:
        left.end_page()
        async with asyncio.timeout(WORK_SECONDS):
            while len(left.page) < min(together, MAX_LOOKED_AT - looked_at):
                if in_bytes > MAX_BYTES or (message := await source.get(fail=False)) is None:
                    break
                left.page.append(message)
                in_bytes += len(message.body)
        if not left.page:
            return
        looked_at += len(left.page)
        yield left.page


async def _remove_one(
    letter: DeadLetter,
    message: AbstractIncomingMessage,
    before: Callable[[DeadLetter], Awaitable[None]],
    done: Removed,
) -> None:
    try:
        await before(letter)
    except NotReplayable as error:
        done.left.append((replace(letter, body=b""), str(error)))
        return
    await message.ack()
    done.removed.append(replace(letter, body=b""))


async def _until_ready(channel: AbstractChannel, queue: str, count: int) -> None:
    for _ in range(READY_POLLS):
        if await ready_messages(channel, queue) >= count:
            return
        await asyncio.sleep(READY_POLL_SECONDS)


@asynccontextmanager
async def open_dead_letters(
    amqp_url: str, ca_file: str | None = None
) -> AsyncIterator[DeadLetters]:
    """A connection for looking and removing, as the service that owns the queues.

    Raises:
        BROKER_ERRORS: the broker is not reached in time, or lost.
    """
    with session_loss_as_error():
        connection = await within(
            CONNECT_SECONDS,
            connect(amqp_url, "dead-letters", heartbeat_seconds=HEARTBEAT_SECONDS, ca_file=ca_file),
            name="dead-letters-connect",
        )
        try:
            yield DeadLetters(connection)
        finally:
            await connection.end(politely=True)


def letter_of(queue: str, message: AbstractIncomingMessage) -> DeadLetter:
    try:
        envelope = decode_command(message.body)
    except NotAnEnvelope:
        envelope = None
    properties, refusal = as_refused(queue.partition(".")[0], message.properties)
    death = _latest_death(message.headers)
    died_at = refusal.get(DIED_AT) or death.get("time")
    reason = refusal.get(REASON) or death.get("reason")
    because = refusal.get(BECAUSE)
    return DeadLetter(
        queue,
        _id_of(message, properties),
        envelope,
        event_type=message.type if envelope is None else None,
        reason=str(reason) if reason is not None else None,
        because=because if isinstance(because, str) else None,
        sent_at=message.timestamp or time_within(message.message_id),
        died_at=died_at if isinstance(died_at, datetime) else None,
        properties=properties,
        body=message.body,
    )


def _id_of(message: AbstractIncomingMessage, properties: Properties) -> str:
    content = f"{properties.user_id or ''}\n".encode() + message.body
    named = message.message_id if _NAME.fullmatch(message.message_id or "") else "unnamed"
    return f"{named}-{hashlib.sha256(content).hexdigest()[:16]}"


def _latest_death(headers: dict[str, Any]) -> dict[str, Any]:
    deaths = headers.get("x-death")
    first = deaths[0] if isinstance(deaths, list) and deaths else None
    return first if isinstance(first, dict) else {}
