"""What one service's user can do at the broker: what the tables allow it, by any way that it tries."""

from __future__ import annotations

import asyncio

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import ChannelAccessRefused

from libs.contracts.events import EVENT_TYPES
from libs.messaging.topology import COMMANDS, EVENT_CONSUMERS, EVENTS, EXCHANGES, QUERIES, REPLIES
from tests.security.connections import connected, is_refused
from tests.security.messages import (
    COMMAND_NAMES,
    EVERYBODY,
    QUEUES,
    addresses,
    may_send,
    queues_of,
    replies_of,
)
from tests.support.infrastructure import Environment


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("service", EVERYBODY)
async def test_a_service_can_publish_what_the_tables_allow_and_nothing_else(
    site: Environment, service: str
) -> None:
    tried = list(addresses())
    async with connected(site.amqp_urls[service]) as connection:
        refused = await asyncio.gather(
            *(is_refused(connection, address, Message(b"{}")) for address in tried)
        )

    passed = {address for address, no in zip(tried, refused, strict=True) if not no}
    assert passed == {address for address in tried if may_send(service, address)}
    assert passed


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("service", EVERYBODY)
async def test_a_service_cannot_name_another_as_the_sender(site: Environment, service: str) -> None:
    own = [address for address in addresses() if may_send(service, address)]
    others = [one for one in EVERYBODY if one != service]
    async with connected(site.amqp_urls[service]) as connection:
        refused = await asyncio.gather(
            *(is_refused(connection, own[0], Message(b"{}", user_id=other)) for other in others)
        )
        own_name = await is_refused(connection, own[0], Message(b"{}", user_id=service))

    assert all(refused)
    assert not own_name


async def can(connection: AbstractConnection, act: str, name: str, key: str = "") -> bool:
    """Whether the broker lets the user do this to a queue, an exchange, or a binding of its own queue."""
    channel: AbstractChannel = await connection.channel()
    queue = await channel.get_queue(name, ensure=False)
    try:
        match act:
            case "read":
                await queue.get(fail=False, no_ack=True)
            case "purge":
                await queue.purge()
            case "delete":
                await channel.queue_delete(name)
            case "declare":
                await channel.declare_queue(name, exclusive=True)
            case "make exchange":
                await channel.declare_exchange(name, "topic", durable=True)
            case "delete exchange":
                await channel.exchange_delete(name)
            case "bind":
                await queue.bind(*key.split(" "))
        await channel.close()
    except ChannelAccessRefused:
        return False
    return True


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("service", EVERYBODY)
async def test_a_service_cannot_touch_queues_of_others_nor_exchanges(
    site: Environment, service: str
) -> None:
    others = [queue for queue in QUEUES if queue not in queues_of(service)]
    new = ["own.name", "amq.gen-1", *(replies_of(one) for one in EVERYBODY if one != service)]
    async with connected(site.amqp_urls[service]) as connection:
        acts = [(act, queue) for act in ("read", "purge", "delete") for queue in others]
        acts += [("declare", name) for name in new]
        acts += [("make exchange", name) for name in (*EXCHANGES, "other")]
        acts += [("delete exchange", name) for name in EXCHANGES]
        done = await asyncio.gather(*(can(connection, act, name) for act, name in acts))

    assert [act for act, it_can in zip(acts, done, strict=True) if it_can] == []


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("service", [one for one in EVERYBODY if queues_of(one)])
async def test_a_service_cannot_have_copies_of_what_is_sent_to_others(
    site: Environment, service: str
) -> None:
    queue = queues_of(service)[0]
    bindings = [f"{COMMANDS} {name}" for name in COMMAND_NAMES if not name.startswith(service)]
    bindings += [f"{QUERIES} {one}" for one in EVERYBODY if one != service]
    bindings += [f"{REPLIES} {replies_of(one)}" for one in EVERYBODY if one != service]
    bindings += [f"{exchange} #" for exchange in EXCHANGES if exchange != EVENTS]
    if service not in EVENT_CONSUMERS:
        bindings += [f"{EVENTS} {key}" for key in ("#", "wire.*", *EVENT_TYPES)]
    async with connected(site.amqp_urls[service]) as connection:
        done = await asyncio.gather(*(can(connection, "bind", queue, key) for key in bindings))

    assert [key for key, it_can in zip(bindings, done, strict=True) if it_can] == []
