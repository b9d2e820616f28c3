"""Connections of one user to the broker, and whether it may publish."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
from aio_pika import Message
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelPreconditionFailed, PublishError
from aiormq.exceptions import ChannelAccessRefused

from tests.security.messages import Address


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[AbstractConnection]:
    connection = await aio_pika.connect(url)
    async with connection:
        yield connection


async def is_refused(connection: AbstractConnection, address: Address, message: Message) -> bool:
    """Whether the broker refuses to publish it. A channel of its own: a refusal closes it."""
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    try:
        exchange = (
            await channel.get_exchange(address.exchange, ensure=False)
            if address.exchange
            else channel.default_exchange
        )
        await exchange.publish(message, address.routing_key, mandatory=True)
        await channel.close()
    except (ChannelAccessRefused, ChannelPreconditionFailed):
        return True
    except PublishError:  # allowed, and no queue took it
        await channel.close()
    return False
