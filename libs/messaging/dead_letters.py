"""Dead letters: commands and events that were refused, kept by the broker until an operator decides.

Looking takes letters from the front of a queue and requeues all of them at once, which leaves a quorum queue in its
order; those that one reader has taken are not seen by another for that moment. A letter is removed by an ack, once what
has to come before it is recorded: a crash in between leaves both. So a letter that is replayed may be accepted again
(`libs.handling.replaying`), and every message has one effect however often it is accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity

from libs.messaging.broker_errors import session_loss_as_error
from libs.messaging.connection import encryption_of
from libs.messaging.envelope import Envelope, NotAnEnvelope, decode_command
from libs.messaging.publishing import Properties
from libs.messaging.refusing import BECAUSE, DIED_AT, REASON, WRONG_SENDER, as_refused
from libs.messaging.senders import NO_SENDER, senders_of_commands

CONNECT_SECONDS = 10.0
WORK_SECONDS = 60.0
MAX_LOOKED_AT = 1000
"""Letters of one queue, from its front, that are in memory at once."""
MAX_BYTES = 64 * 1024 * 1024
"""Of their bodies; the first letter beyond is the last one that is looked at."""
READY_POLLS = 50
READY_POLL_SECONDS = 0.02
"""A quorum queue has requeued letters back after a moment."""
REMOVED_TOGETHER = 50
"""Letters that are removed within one `WORK_SECONDS`."""

Take = Callable[[int], Awaitable[list[AbstractIncomingMessage]]]


class NotReplayable(Exception):
    """The letter can never be accepted; the text says why. It stays where it is."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter. `body` is as delivered, its sensitive fields sealed.

    Args:
        envelope: of a command; None of an event, and of a command that cannot be read.
        event_type: of an event, as it says itself.
        reason: for which it was refused, as in `bankside_messages_refused_total`, or the broker's: `rejected`.
        because: the sentence of the consumer that refused it (`libs.messaging.refusing`).
        properties: as its sender set them; of these the broker has checked `user_id`, the sender.
    """

    queue: str
    message_id: str
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
        """By message id or command id; several letters can be of one command."""
        return wanted == self.message_id or (
            self.envelope is not None and wanted == self.envelope.id
        )


@dataclass(frozen=True, slots=True)
class Removed:
    """Letters that are gone from the queue, and those that cannot be removed in this way, with the reasons."""

    removed: list[DeadLetter]
    left: list[tuple[DeadLetter, str]]


class DeadLetters:
    """The dead queues of one broker. Every method is bounded by `WORK_SECONDS` and raises TimeoutError beyond; `remove`
    has so long for each of its pages.
    """

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection

    async def count(self, queue: str) -> int:
        """How many letters are ready in a queue; none when it was never declared."""
        async with asyncio.timeout(WORK_SECONDS):
            channel = self._connection.channel()
            try:
                async with channel:
                    found = await channel.declare_queue(queue, passive=True)
                    return found.declaration_result.message_count or 0
            except ChannelNotFoundEntity:
                return 0

    async def look(self, queue: str, limit: int = MAX_LOOKED_AT) -> list[DeadLetter]:
        """The letters at the front of a queue, oldest first; they stay there, in their order."""
        async with asyncio.timeout(WORK_SECONDS), self._front(queue) as take:
            return [letter_of(queue, message) for message in await take(limit)]

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
        looked_at = 0
        async with self._front(queue) as take:
            while looked_at < MAX_LOOKED_AT:
                async with asyncio.timeout(WORK_SECONDS):
                    page = await take(min(REMOVED_TOGETHER, MAX_LOOKED_AT - looked_at))
                    for message in page:
                        letter = letter_of(queue, message)
                        if wanted(letter):
                            await _remove_one(letter, message, before, done)
                if not page:
                    break
                looked_at += len(page)
        return done

    @asynccontextmanager
    async def _front(self, queue: str) -> AsyncIterator[Take]:
        """What takes so many messages from the front; those not acked in the body are requeued together. When this ends
        they are there for the next one, unless another reader has taken them.
        """
        taken: list[AbstractIncomingMessage] = []
        async with AsyncExitStack() as opened:
            async with asyncio.timeout(WORK_SECONDS):
                channel = self._connection.channel(publisher_confirms=False)
                opened.push_async_callback(channel.close)
                await channel.initialize()
                try:
                    source = await channel.get_queue(queue, ensure=True)
                except ChannelNotFoundEntity:  # its service was never started
                    source = None

            in_bytes = 0

            async def take(limit: int) -> list[AbstractIncomingMessage]:
                nonlocal in_bytes
                begin = len(taken)
                while source is not None and len(taken) - begin < limit and in_bytes <= MAX_BYTES:
                    if (message := await source.get(fail=False)) is None:
                        break
                    taken.append(message)
                    in_bytes += len(message.body)
                return taken[begin:]

            try:
                yield take
            finally:
                left = [message for message in taken if not message.processed]
                if left:
                    async with asyncio.timeout(WORK_SECONDS):
                        await left[-1].nack(multiple=True, requeue=True)
                        await _until_ready(channel, queue, len(left))


async def _remove_one(
    letter: DeadLetter,
    message: AbstractIncomingMessage,
    before: Callable[[DeadLetter], Awaitable[None]],
    done: Removed,
) -> None:
    try:
        await before(letter)
    except NotReplayable as error:
        done.left.append((letter, str(error)))
        return
    await message.ack()
    done.removed.append(letter)


async def _until_ready(channel: AbstractChannel, queue: str, count: int) -> None:
    for _ in range(READY_POLLS):
        found = await channel.declare_queue(queue, passive=True)
        if (found.declaration_result.message_count or 0) >= count:
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
    async with asyncio.timeout(CONNECT_SECONDS):
        connection = await aio_pika.connect(
            amqp_url,
            ssl_context=encryption_of(amqp_url, ca_file),
            client_properties={"connection_name": "bankside-dead-letters"},
        )
    async with connection:
        with session_loss_as_error():
            yield DeadLetters(connection)


def letter_of(queue: str, message: AbstractIncomingMessage) -> DeadLetter:
    try:
        envelope = decode_command(message.body)
    except NotAnEnvelope:
        envelope = None
    properties, refusal = as_refused(queue.partition(".")[0], message.properties)
    death = _latest_death(message.headers)
    forged = refusal.get(REASON) == WRONG_SENDER
    if envelope is not None:
        senders = senders_of_commands(queue.partition(".")[0]).get(envelope.operation, NO_SENDER)
        forged = forged or properties.user_id not in senders
    died_at = refusal.get(DIED_AT) or death.get("time")
    reason = refusal.get(REASON) or death.get("reason")
    because = refusal.get(BECAUSE)
    return DeadLetter(
        queue,
        _id_of(message, properties, forged=forged),
        envelope,
        event_type=message.type if envelope is None else None,
        reason=str(reason) if reason is not None else None,
        because=because if isinstance(because, str) else None,
        sent_at=message.timestamp or _time_within(message.message_id),
        died_at=died_at if isinstance(died_at, datetime) else None,
        properties=properties,
        body=message.body,
    )


def _id_of(message: AbstractIncomingMessage, properties: Properties, *, forged: bool) -> str:
    """The id that its sender gave it. One who may not send such a message may have copied that of a letter that has
    to be replayed: then the id has a digest besides, and neither is taken for the other.
    """
    if message.message_id and not forged:
        return message.message_id
    content = f"{properties.user_id or ''}\n".encode() + message.body
    digest = hashlib.sha256(content if forged else message.body).hexdigest()[:16]
    return f"{message.message_id or 'sha256'}-{digest}"


def _latest_death(headers: dict[str, Any]) -> dict[str, Any]:
    deaths = headers.get("x-death")
    first = deaths[0] if isinstance(deaths, list) and deaths else None
    return first if isinstance(first, dict) else {}


def _time_within(message_id: str | None) -> datetime | None:
    """The millisecond in which a UUIDv7 was made; of an event it follows `evt_`."""
    try:
        made = UUID((message_id or "").removeprefix("evt_"))
    except ValueError:
        return None
    return datetime.fromtimestamp((made.int >> 80) / 1000, UTC) if made.version == 7 else None
