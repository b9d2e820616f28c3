"""A reply of whose arrival something depends: routed, certainly not, or not known."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractQueue

from libs.messaging.broker import Broker
from libs.messaging.envelope import Reply, decode_replies
from libs.messaging.replier import NotKnownWhetherRouted, Replier
from libs.messaging.topology import REPLIES
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.gateway.desk import until
from tests.support.infrastructure import Environment
from tests.support.pace import pace

REPLY = Reply(id="command", to="message")


@asynccontextmanager
async def replier_at(environment: Environment) -> AsyncIterator[tuple[Replier, Wire, Broker]]:
    replier = Replier("onboarding")
    async with wire_to(environment.amqp_urls["onboarding"]) as wire:
        broker = Broker(wire.url, "tests")
        broker.add(replier)
        async with broker.open():
            await broker.start(wait_seconds=10 * pace())
            yield replier, wire, broker


async def a_reply_queue(channel: AbstractChannel) -> AbstractQueue:
    queue = await channel.declare_queue(f"gateway.replies.{uuid.uuid4()}", exclusive=True)
    await queue.bind(REPLIES, queue.name)
    return queue


async def test_a_reply_that_its_queue_took_is_routed_and_one_without_a_queue_is_not(
    environment: Environment,
) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    async with (
        connection,
        connection.channel() as channel,
        replier_at(environment) as (replier, _, _),
    ):
        queue = await a_reply_queue(channel)

        there = await replier.reply_confirmed(queue.name, REPLY, 5 * pace())
        gone = await replier.reply_confirmed("gateway.replies.gone", REPLY, 5 * pace())
        again = await replier.reply_confirmed(queue.name, REPLY, 5 * pace())

        message = await queue.get()

    assert (there, gone, again) == (True, False, True)
    assert decode_replies(message.body) == [REPLY]


async def test_without_a_session_or_time_nothing_is_sent(environment: Environment) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    async with (
        connection,
        connection.channel() as channel,
        replier_at(environment) as (replier, wire, broker),
    ):
        queue = await a_reply_queue(channel)
        late = await replier.reply_confirmed(queue.name, REPLY, 0)
        wire.is_open = False
        wire.cut()
        await until(lambda: _is_away(broker))

        away = await replier.reply_confirmed(queue.name, REPLY, 5 * pace())

        assert await queue.get(fail=False) is None
    assert (late, away) == (False, False)


async def _is_away(broker: Broker) -> bool:
    try:
        await broker.ping()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("is_cut", [True, False], ids=["session lost", "no confirm in time"])
async def test_a_reply_that_is_not_confirmed_may_have_arrived(
    environment: Environment, is_cut: bool
) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    async with (
        connection,
        connection.channel() as channel,
        replier_at(environment) as (replier, wire, _),
    ):
        queue = await a_reply_queue(channel)
        wire.silence()
        sending = asyncio.create_task(replier.reply_confirmed(queue.name, REPLY, 1.5))
        await until(lambda: queue.get(fail=False))
        if is_cut:
            wire.cut()

        async with asyncio.timeout(5 * pace()):
            with pytest.raises(NotKnownWhetherRouted):
                await sending
