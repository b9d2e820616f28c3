"""A broker that an earlier release used, whose services shared one user and whose exchanges were direct."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence

import aio_pika
import msgspec
import pytest_asyncio
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from libs.contracts.principal import Family, Principal
from libs.messaging.envelope import Envelope, decode_command, encode
from libs.messaging.topology import (
    COMMANDS,
    DEAD,
    EVENTS,
    EXCHANGES,
    QUERIES,
    commands_queue,
    dead_queue,
    declare_durable_queue,
    declare_events,
    declare_queries,
    events_queue,
)
from libs.messaging.upgrade import upgrade
from tests.support.event_bus import made_up_events
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually

QUEUE = commands_queue("onboarding")
EVENTS_QUEUE = events_queue("webhook_dispatcher")


def a_command(operation: str) -> Envelope:
    return Envelope(
        id=str(uuid.uuid4()),
        message_id=str(uuid.uuid4()),
        request_id="request",
        operation=operation,
        principal=Principal("tenant", "Tenant", Family.PARTNER, "sub_test"),
        deadline=0.0,
        body=msgspec.Raw(b"{}"),
    )


@pytest_asyncio.fixture
async def channel(fresh_environment: Environment) -> AsyncIterator[AbstractChannel]:
    """The administrator's, with exchanges and queues as the earlier release declared them."""
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with connection, connection.channel() as opened:
        for name in (COMMANDS, QUERIES, DEAD):
            await opened.exchange_delete(name)
            await opened.declare_exchange(name, ExchangeType.DIRECT, durable=True)
        await declare_durable_queue(opened, QUEUE)
        await declare_events(opened, "webhook_dispatcher")
        yield opened


async def publish(channel: AbstractChannel, queue: str, messages: Sequence[Message]) -> None:
    for message in messages:
        await channel.default_exchange.publish(message, queue)


async def taken(channel: AbstractChannel, queue: str) -> list[AbstractIncomingMessage]:
    source, found = await channel.get_queue(queue), []
    while message := await source.get(fail=False, no_ack=True):
        found.append(message)
    return found


async def test_what_was_queued_is_there_in_its_order_with_its_sender_and_forgeries_are_dead(
    fresh_environment: Environment, channel: AbstractChannel
) -> None:
    good = [a_command("onboarding.update_person") for _ in range(3)]
    forged = a_command("onboarding.apply_decision")
    events = made_up_events(2, "tenant", "customer")
    sent = [encode(good[0]), encode(forged), *map(encode, good[1:]), b"\xff"]
    await publish(channel, QUEUE, [Message(body, reply_to="amq.gen-gone") for body in sent])
    news = [Message(one.body, type=one.type, message_id=one.event_id) for one in events]
    await publish(channel, EVENTS_QUEUE, news)

    moved = await upgrade(fresh_environment.amqp_url, fresh_environment.amqp_urls)
    again = await upgrade(fresh_environment.amqp_url, fresh_environment.amqp_urls)

    assert (moved, again) == (5, 0)
    commands = await taken(channel, QUEUE)
    assert [decode_command(message.body) for message in commands] == good
    assert {(m.user_id, m.routing_key, m.reply_to, m.exchange) for m in commands} == {
        ("gateway", "onboarding.update_person", None, COMMANDS)
    }
    recorded = await taken(channel, EVENTS_QUEUE)
    assert [message.message_id for message in recorded] == [event.event_id for event in events]
    assert {(m.user_id, m.type, m.exchange) for m in recorded} == {
        ("onboarding", "person.updated", EVENTS)
    }
    letters: list[bytes] = []

    async def both_are_dead() -> bool:
        letters.extend(message.body for message in await taken(channel, dead_queue(QUEUE)))
        return len(letters) == 2

    await eventually("both are dead", both_are_dead)
    assert sorted(letters) == sorted([encode(forged), b"\xff"])


async def test_exchanges_are_of_the_kind_on_which_the_broker_checks_routing_keys(
    fresh_environment: Environment, channel: AbstractChannel
) -> None:
    await upgrade(fresh_environment.amqp_url, fresh_environment.amqp_urls)

    for name in EXCHANGES:  # refused if it were of another kind
        await channel.declare_exchange(name, ExchangeType.TOPIC, durable=True)


async def test_queues_of_queries_are_left_to_the_services_which_choose_their_type(
    fresh_environment: Environment, channel: AbstractChannel
) -> None:
    await declare_queries(channel, "ledger_read", "quorum")

    await upgrade(fresh_environment.amqp_url, fresh_environment.amqp_urls)

    await declare_queries(channel, "ledger_read", "quorum")  # refused if it were of another type


async def test_what_names_no_sender_after_the_upgrade_is_given_none(
    fresh_environment: Environment, channel: AbstractChannel
) -> None:
    urls = fresh_environment.amqp_urls
    await upgrade(fresh_environment.amqp_url, urls)
    [event] = made_up_events(1, "tenant", "customer")
    command = encode(a_command("onboarding.update_person"))
    await publish(channel, EVENTS_QUEUE, [Message(event.body, type=event.type)])
    await publish(channel, QUEUE, [Message(command)])

    moved = await upgrade(fresh_environment.amqp_url, urls)

    left = await taken(channel, EVENTS_QUEUE) + await taken(channel, QUEUE)
    assert moved == 0
    assert [message.body for message in left] == [event.body, command]
    assert [message.user_id for message in left] == [None, None]
