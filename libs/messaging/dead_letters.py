"""Dead letters: commands and events that were refused, kept by the broker until an operator decides.

Looking takes letters from the front of a queue and requeues all of them at once, which leaves a quorum queue in its
order. Replaying publishes a copy, waits for the broker's confirm, and only then acks the letter: a crash
in between leaves both, and every command has one effect however often it is delivered.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import aio_pika
from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage
from aio_pika.exceptions import ChannelNotFoundEntity, DeliveryError, PublishError

from libs.contracts.table import SERVICES, operations_of
from libs.messaging.broker_errors import session_loss_as_error
from libs.messaging.connection import encryption_of
from libs.messaging.envelope import Envelope, NotAnEnvelope, decode_command
from libs.messaging.topology import (
    EVENT_CONSUMERS,
    commands_queue,
    dead_queue,
    events_queue,
)

CONNECT_SECONDS = 10.0
WORK_SECONDS = 60.0
MAX_LOOKED_AT = 1000
"""Letters of one queue, from its front, that are in memory at once."""


class ReplayRefused(Exception):
    """The broker did not take the copy; the letter stays where it was."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One letter. `body` is as delivered, its sensitive fields sealed.

    Args:
        envelope: of a command; None of an event, and of a command that cannot be read.
        event_type: of an event, as it says itself.
    """

    queue: str
    message_id: str
    envelope: Envelope | None
    event_type: str | None
    reason: str | None
    """The broker's: `delivery_limit`, `rejected`."""
    sent_at: datetime | None
    died_at: datetime | None
    body: bytes = field(repr=False)

    def has_id(self, wanted: str) -> bool:
        """By message id or command id; several letters can be of one command."""
        return wanted == self.message_id or (
            self.envelope is not None and wanted == self.envelope.id
        )


def dead_queues() -> tuple[str, ...]:
    """Of every service that takes commands, and of those that take events."""
    commands = (
        commands_queue(service)
        for service in SERVICES
        if any(not operation.is_query for operation in operations_of(service))
    )
    return tuple(map(dead_queue, (*commands, *map(events_queue, EVENT_CONSUMERS))))


class DeadLetters:
    """The dead queues of one broker. Every method is bounded by `WORK_SECONDS` and raises TimeoutError beyond."""

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
        async with asyncio.timeout(WORK_SECONDS), self._taken(queue, limit) as taken:
            return [letter_of(queue, message) for message in taken]

    async def replay(self, queue: str, wanted: Callable[[DeadLetter], bool]) -> list[DeadLetter]:
        """Send letters back to the queue that they died in, and remove them; the others stay in their order.

        Raises:
            ReplayRefused: the broker did not take one; it and those after it stay.
        """
        replayed = []
        async with (
            asyncio.timeout(WORK_SECONDS),
            self._taken(queue, MAX_LOOKED_AT) as taken,
            self._connection.channel(publisher_confirms=True, on_return_raises=True) as publishing,
        ):
            for message in taken:
                letter = letter_of(queue, message)
                if not wanted(letter):
                    continue
                try:
                    await publishing.default_exchange.publish(
                        _without_death(message), queue.removesuffix(dead_queue("")), mandatory=True
                    )
                except (DeliveryError, PublishError) as error:
                    raise ReplayRefused(type(error).__name__) from error
                await message.ack()
                replayed.append(letter)
        return replayed

    @asynccontextmanager
    async def _taken(self, queue: str, limit: int) -> AsyncIterator[list[AbstractIncomingMessage]]:
        """Up to `limit` messages from the front; those not acked in the body are requeued together."""
        taken: list[AbstractIncomingMessage] = []
        async with self._connection.channel(publisher_confirms=False) as channel:
            try:
                source = await channel.get_queue(queue, ensure=True)
            except ChannelNotFoundEntity:  # its service was never started
                yield taken
                return
            try:
                while len(taken) < limit and (message := await source.get(fail=False)) is not None:
                    taken.append(message)
                yield taken
            finally:
                left = [message for message in taken if not message.processed]
                if left:
                    await left[-1].nack(multiple=True, requeue=True)


@asynccontextmanager
async def open_dead_letters(
    amqp_url: str, ca_file: str | None = None
) -> AsyncIterator[DeadLetters]:
    """A connection for looking and replaying. Raises BROKER_ERRORS when the broker is not reached in time or lost."""
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
    death = _latest_death(message.headers)
    died_at = death.get("time")
    reason = death.get("reason")
    return DeadLetter(
        queue,
        message.message_id or f"sha256-{hashlib.sha256(message.body).hexdigest()[:16]}",
        envelope,
        event_type=message.type if envelope is None else None,
        reason=str(reason) if reason is not None else None,
        sent_at=message.timestamp or _time_within(message.message_id),
        died_at=died_at if isinstance(died_at, datetime) else None,
        body=message.body,
    )


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


def _without_death(message: AbstractIncomingMessage) -> Message:
    """The message as sent, without the broker's notes of its death: its deliveries are counted anew."""
    headers = {
        name: value
        for name, value in message.headers.items()
        if not name.startswith(("x-death", "x-first-death", "x-last-death", "x-delivery-count"))
    }
    return Message(
        message.body,
        headers=headers,
        content_type=message.content_type,
        delivery_mode=DeliveryMode.PERSISTENT,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        message_id=message.message_id,
        timestamp=message.timestamp,
        type=message.type,
    )
