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
from typing import Any, cast
from uuid import UUID

import aiormq
from aiormq import ChannelNotFoundEntity, DeliveryError
from aiormq.abc import DeliveredMessage

from libs.contracts.table import SERVICES, operations_of
from libs.messaging.envelope import Envelope, NotAnEnvelope, decode_command
from libs.messaging.publishing import DEFAULT_EXCHANGE, PERSISTENT, Properties, Publisher
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

    def __init__(self, connection: aiormq.Connection) -> None:
        self._connection = connection

    async def count(self, queue: str) -> int:
        """How many letters are ready in a queue; none when it was never declared."""
        async with asyncio.timeout(WORK_SECONDS), self._channel() as channel:
            try:
                return (await channel.queue_declare(queue, passive=True)).message_count or 0
            except ChannelNotFoundEntity:
                return 0

    async def look(self, queue: str, limit: int = MAX_LOOKED_AT) -> list[DeadLetter]:
        """The letters at the front of a queue, oldest first; they stay there, in their order."""
        async with asyncio.timeout(WORK_SECONDS), self._taken(queue, limit) as taken:
            return [message.letter for message in taken]

    async def replay(self, queue: str, wanted: Callable[[DeadLetter], bool]) -> list[DeadLetter]:
        """Send letters back to the queue that they died in, and remove them; the others stay in their order.

        Raises:
            ReplayRefused: the broker did not take one; it and those after it stay.
        """
        replayed = []
        async with (
            asyncio.timeout(WORK_SECONDS),
            self._taken(queue, MAX_LOOKED_AT) as taken,
            self._channel(confirms=True) as publishing,
        ):
            publisher = Publisher(publishing, confirms=True)
            for message in taken:
                if not wanted(message.letter):
                    continue
                try:
                    await publisher.publish(
                        DEFAULT_EXCHANGE,
                        queue.removesuffix(dead_queue("")),
                        message.letter.body,
                        _without_death(message.properties),
                    )
                except DeliveryError as error:
                    raise ReplayRefused(type(error).__name__) from error
                await message.ack()
                replayed.append(message.letter)
        return replayed

    @asynccontextmanager
    async def _taken(self, queue: str, limit: int) -> AsyncIterator[list[_Taken]]:
        """Up to `limit` messages from the front; those not acked in the body are requeued together."""
        taken: list[_Taken] = []
        async with self._channel() as channel:
            try:
                await channel.queue_declare(queue, passive=True)
            except ChannelNotFoundEntity:  # its service was never started
                yield taken
                return
            try:
                while len(taken) < limit:
                    message = await channel.basic_get(queue)
                    if message.delivery_tag is None:  # the queue is empty
                        break
                    taken.append(_Taken(queue, message, message.delivery_tag))
                yield taken
            finally:
                left = [message for message in taken if not message.is_acked]
                if left:
                    await channel.basic_nack(left[-1].tag, multiple=True, requeue=True)

    @asynccontextmanager
    async def _channel(self, *, confirms: bool = False) -> AsyncIterator[aiormq.Channel]:
        channel = await self._connection.channel(publisher_confirms=confirms)
        try:
            yield cast(aiormq.Channel, channel)
        finally:
            await channel.close()


class _Taken:
    """One message that was taken from a dead queue."""

    def __init__(self, queue: str, message: DeliveredMessage, tag: int) -> None:
        self.letter = letter_of(queue, message.body, message.header.properties)
        self.properties: Properties = message.header.properties
        self.tag = tag
        self.is_acked = False
        self._channel = message.channel

    async def ack(self) -> None:
        await self._channel.basic_ack(self.tag)
        self.is_acked = True


@asynccontextmanager
async def open_dead_letters(amqp_url: str) -> AsyncIterator[DeadLetters]:
    """A connection for looking and replaying. Raises BROKER_ERRORS when the broker is not reached in time."""
    connection = aiormq.Connection(
        amqp_url, client_properties={"connection_name": "bankside-dead-letters"}
    )
    async with asyncio.timeout(CONNECT_SECONDS):
        await connection.connect()
    async with connection:
        yield DeadLetters(connection)


def letter_of(queue: str, body: bytes, properties: Properties) -> DeadLetter:
    try:
        envelope = decode_command(body)
    except NotAnEnvelope:
        envelope = None
    death = _latest_death(properties.headers or {})
    died_at = death.get("time")
    reason = death.get("reason")
    return DeadLetter(
        queue,
        properties.message_id or f"sha256-{hashlib.sha256(body).hexdigest()[:16]}",
        envelope,
        event_type=properties.message_type if envelope is None else None,
        reason=str(reason) if reason is not None else None,
        sent_at=properties.timestamp or _time_within(properties.message_id),
        died_at=died_at if isinstance(died_at, datetime) else None,
        body=body,
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


def _without_death(properties: Properties) -> Properties:
    """The properties as sent, without the broker's notes of the message's death: its deliveries are counted anew."""
    headers = {
        name: value
        for name, value in (properties.headers or {}).items()
        if not name.startswith(("x-death", "x-first-death", "x-last-death", "x-delivery-count"))
    }
    return Properties(
        headers=headers,
        content_type=properties.content_type,
        delivery_mode=PERSISTENT,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        message_id=properties.message_id,
        timestamp=properties.timestamp,
        message_type=properties.message_type,
    )
