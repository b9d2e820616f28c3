"""What a test finds in the virtual host that the one before it used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelNotFoundEntity

from libs.messaging.topology import (
    EVENTS,
    commands_queue,
    declare_commands,
    declare_events,
    events_queue,
)
from tests.integration.recycled_vhost import RecycledVhost
from tests.support.infrastructure import Environment
from tests.support.pace import pace

QUEUE = events_queue("webhook_dispatcher")


async def an_event_is_left(channel: AbstractChannel) -> None:
    exchange = await channel.get_exchange(EVENTS, ensure=False)
    await exchange.publish(aio_pika.Message(b"left"), routing_key="person.updated")


async def the_queue_is_gone(channel: AbstractChannel) -> None:
    await channel.queue_delete(QUEUE)


async def the_queue_has_other_arguments(channel: AbstractChannel) -> None:
    await channel.queue_delete(QUEUE)
    await channel.declare_queue(QUEUE, durable=True)


async def a_service_has_queues(channel: AbstractChannel) -> None:
    await declare_commands(channel, "onboarding")


@pytest.mark.parametrize(
    "leaves",
    [
        an_event_is_left,
        the_queue_is_gone,
        the_queue_has_other_arguments,
        a_service_has_queues,
    ],
)
async def test_each_finds_what_the_definitions_made_and_nothing_else(
    fresh_environment: Environment,
    recycled_vhost: RecycledVhost,
    leaves: Callable[[AbstractChannel], Awaitable[None]],
) -> None:
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with connection, connection.channel() as channel:
        await leaves(channel)

        await recycled_vhost.empty()

        assert recycled_vhost.url() == fresh_environment.amqp_url
        await declare_events(channel, "webhook_dispatcher")  # refused where arguments differ
        queue = await channel.declare_queue(QUEUE, passive=True)
        assert queue.declaration_result.message_count == 0
        await an_event_is_left(channel)
        assert (await queue.get(timeout=10 * pace())).body == b"left"
        with pytest.raises(ChannelNotFoundEntity):
            await channel.declare_queue(commands_queue("onboarding"), passive=True)
