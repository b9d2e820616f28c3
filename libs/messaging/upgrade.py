"""Brings a broker that an earlier release used to this one: `python -m libs.messaging.upgrade`.

No service of the earlier release may run meanwhile: it would declare its exchanges again.

| what an earlier release left | what is done |
|---|---|
| direct exchanges, whose routing keys the broker does not check | replaced by topic exchanges; no message is lost |
| queues of commands and events, and bindings | declared as by the services, which choose the type of those of queries |
| commands and events without a sender | published anew as their senders, confirmed, and only then acked |

A message that this release would take from no sender goes to the dead queue. Ended in between, it leaves a message
twice at most, which has one effect. Done once, it gives no message a sender any more: from then on one without is
forged, by a service that left the property out. That it was done is seen by the exchange of dead letters, which is
replaced last.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import aio_pika
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractConnection, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import ChannelPreconditionFailed

from libs.contracts.table import SERVICES
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.connection import encryption_of
from libs.messaging.envelope import NotAnEnvelope, decode_command
from libs.messaging.senders import EMITTERS, PARTICIPANTS, senders_of_commands
from libs.messaging.topology import (
    COMMANDS,
    DEAD,
    EVENT_CONSUMERS,
    EVENTS,
    EXCHANGES,
    commands_queue,
    declare_commands,
    declare_events,
    events_queue,
)
from libs.secret_sources import BadSecret, read_secret
from libs.tls import ca_file_setting

CONNECT_SECONDS = 10.0
UPGRADE_SECONDS = 600.0
ADMINISTRATOR = "administrator"

SenderOf = Callable[[AbstractIncomingMessage], str | None]


async def upgrade(
    administrator_url: str, urls: Mapping[str, str], ca_file: str | None = None
) -> int:
    """Upgrade the virtual host of these URLs; returns how many messages were published anew.

    Args:
        urls: each service's own.
        ca_file: as of `libs.messaging.broker.Broker`.

    Raises:
        BROKER_ERRORS: a server that is not reached or refuses; what was done until then stays done.
    """
    async with asyncio.timeout(UPGRADE_SECONDS), AsyncExitStack() as opened:
        administrator = await _connected(administrator_url, ca_file, opened)
        was_done = await _is_topic(administrator, DEAD)
        for name in EXCHANGES:
            if name != DEAD:
                await _replace_exchange(administrator, name)
        await _declare_queues(administrator)
        moved = 0 if was_done else await _stamp_all(administrator, _Senders(urls, ca_file, opened))
        await _replace_exchange(administrator, DEAD)
        await _declare_queues(administrator)
        return moved


async def _declare_queues(administrator: AbstractConnection) -> None:
    async with administrator.channel() as channel:
        for service in SERVICES:
            if senders_of_commands(service):
                await declare_commands(channel, service)
        for service in EVENT_CONSUMERS:
            await declare_events(channel, service)


async def _stamp_all(administrator: AbstractConnection, senders: _Senders) -> int:
    moved = 0
    for service in SERVICES:
        if known := senders_of_commands(service):

            def sender_of(
                message: AbstractIncomingMessage, known: Mapping[str, frozenset[str]] = known
            ) -> str | None:
                return _sender_of_command(message, known)

            queue = commands_queue(service)
            moved += await _stamp(administrator, queue, senders, COMMANDS, sender_of)
    for service in EVENT_CONSUMERS:
        queue = events_queue(service)
        moved += await _stamp(administrator, queue, senders, EVENTS, _emitter)
    return moved


async def _connected(url: str, ca_file: str | None, opened: AsyncExitStack) -> AbstractConnection:
    async with asyncio.timeout(CONNECT_SECONDS):
        connection = await aio_pika.connect(
            url,
            ssl_context=encryption_of(url, ca_file),
            client_properties={"connection_name": "bankside-upgrade"},
        )
    await opened.enter_async_context(connection)
    return connection


async def _is_topic(administrator: AbstractConnection, name: str) -> bool:
    """Whether the exchange is one of this release, which it becomes if there was none."""
    try:
        async with administrator.channel() as channel:
            await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)
    except ChannelPreconditionFailed:
        return False
    return True


async def _replace_exchange(administrator: AbstractConnection, name: str) -> None:
    if not await _is_topic(administrator, name):
        async with administrator.channel() as channel:
            await channel.exchange_delete(name)
            await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)


class _Senders:
    """The exchanges, as each service may publish to them."""

    def __init__(
        self, urls: Mapping[str, str], ca_file: str | None, opened: AsyncExitStack
    ) -> None:
        self._urls = urls
        self._ca_file = ca_file
        self._opened = opened
        self._exchanges: dict[tuple[str, str], AbstractExchange] = {}

    async def exchange(self, sender: str, name: str) -> AbstractExchange:
        found = self._exchanges.get((sender, name))
        if found is None:
            connection = await _connected(self._urls[sender], self._ca_file, self._opened)
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            found = await channel.get_exchange(name, ensure=False)
            self._exchanges[sender, name] = found
        return found


async def _stamp(
    administrator: AbstractConnection,
    queue: str,
    senders: _Senders,
    exchange: str,
    sender_of: SenderOf,
) -> int:
    """Publish the messages at the front of the queue that name no sender anew, in their order."""
    moved = 0
    async with administrator.channel(publisher_confirms=False) as channel:
        source = await channel.declare_queue(queue, passive=True)
        for _ in range(source.declaration_result.message_count or 0):
            message = await source.get(fail=False)
            if message is None:
                break
            if message.user_id is not None:  # of this release, as all that come after it
                await message.nack(requeue=True)
                break
            sender = sender_of(message)
            if sender is None:
                await message.reject(requeue=False)
                continue
            publishing = await senders.exchange(sender, exchange)
            await publishing.publish(_stamped(message, sender), _routing_key(message))
            await message.ack()
            moved += 1
    return moved


def _sender_of_command(
    message: AbstractIncomingMessage, known: Mapping[str, frozenset[str]]
) -> str | None:
    try:
        operation = decode_command(message.body).operation
    except NotAnEnvelope:
        return None
    return next(iter(known.get(operation, ())), None)


def _emitter(message: AbstractIncomingMessage) -> str | None:
    return EMITTERS.get((message.type or "").partition(".")[0])


def _routing_key(message: AbstractIncomingMessage) -> str:
    """By its body or type: a replayed letter of an earlier release came by the name of its queue."""
    return message.type or decode_command(message.body).operation


def _stamped(message: AbstractIncomingMessage, sender: str) -> Message:
    """Without the queue for its reply: that one ended with the release that sent it."""
    return Message(
        message.body,
        headers={
            name: value
            for name, value in message.headers.items()
            if not name.startswith(("x-death", "x-first-death", "x-last-death", "x-delivery-count"))
        },
        content_type=message.content_type,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=message.message_id,
        type=message.type,
        user_id=sender,
    )


def main() -> int:
    names = {one: f"BANKSIDE_{one.upper()}_AMQP_URL" for one in PARTICIPANTS}
    names[ADMINISTRATOR] = "BANKSIDE_AMQP_URL"
    try:
        urls = {one: url for one, name in names.items() if (url := read_secret(name))}
    except BadSecret as error:
        print(f"upgrade: {error}", file=sys.stderr)
        return 78
    if missing := [name for one, name in names.items() if one not in urls]:
        print(f"upgrade: set {', '.join(missing)}.", file=sys.stderr)
        return 78
    try:
        moved = asyncio.run(upgrade(urls[ADMINISTRATOR], urls, ca_file_setting("AMQP", "OPERATOR")))
    except BROKER_ERRORS as error:
        print(f"upgrade: the broker: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"upgrade: exchanges and queues are those of this release; published anew: {moved}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
