"""The broker and the database die under load: every answer is honest, and everything is done and delivered once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from libs.contracts.events import Event
from tests.faults.event_consumer import (
    KINDS,
    consuming,
    nothing_else_is_allowed,
    the_guides_program_takes,
    with_consumer,
)
from tests.faults.load import TRANSIT, Kind, Load, new_load, waits
from tests.support.api import signed_headers
from tests.support.event_bus import event_bus, made_up_events
from tests.support.infrastructure import Environment
from tests.support.live import ACCOUNTS, Deployment, Live, hands_on
from tests.support.own_servers import OwnPostgres, OwnRabbitMQ, own_postgres, own_rabbitmq
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

FELT_SECONDS = 20.0
"""Callers who wait for a blocked broker are answered at the gateway's deadline of 6 s."""
BURST = 110
"""Events: more than a consumer is given before it has acked some."""
BACK_SECONDS = 60.0
"""The node needs up to 15 s of it to start on a busy machine, quorum queues elect their leaders, and circuits that
opened meanwhile come back after pauses of up to 30 s.
"""


@dataclass
class Mortal:
    """A load on a stack whose servers are its own, and the URL of a consumer of all its events."""

    load: Load
    postgres: OwnPostgres
    rabbitmq: OwnRabbitMQ
    consumer_url: str


@pytest_asyncio.fixture
async def mortal(empty_environment: Environment, tmp_path: Path) -> AsyncIterator[Mortal]:
    async with AsyncExitStack() as opened:
        rabbitmq = await opened.enter_async_context(own_rabbitmq(empty_environment.secrets))
        postgres = await opened.enter_async_context(own_postgres(empty_environment))
        environment = empty_environment.with_urls(
            database_urls=postgres.database_urls, amqp_url=rabbitmq.amqp_url
        )
        events = RecordedEvents(rabbitmq.amqp_url)
        await events.begin()
        consumer_url = await asyncio.to_thread(with_consumer, rabbitmq)
        settings = waits() | TRANSIT
        stack = await opened.enter_async_context(running_stack(environment, tmp_path, **settings))
        live = await opened.enter_async_context(hands_on(Deployment(stack, events)))
        load = await opened.enter_async_context(new_load(live, "mortal"))
        await rabbitmq.settled()
        yield Mortal(load, postgres, rabbitmq, consumer_url)


async def test_a_broker_that_blocks_publishers_and_then_dies_with_the_database_loses_and_doubles_nothing(
    mortal: Mortal, tmp_path: Path
) -> None:
    """For callers, for their subscription, and for a program with a queue of its own, which may do nothing else at the
    broker.
    """
    load = mortal.load
    partner = load.live.partner
    burst = made_up_events(BURST, partner.key.tenant, "a customer")

    async with consuming(mortal.consumer_url) as consumer:
        async with load.running():
            await load.is_on()
            await mortal.rabbitmq.block_publishers()
            await is_felt(load)
            await mortal.rabbitmq.unblock_publishers()
            await is_back(load)

            used = signed_headers(partner.key, "GET", ACCOUNTS)
            assert (await partner.send("GET", ACCOUNTS, b"", used)).status == 200
            consumer.goes_on.clear()
            await publish(mortal, burst)
            await load.in_flight()
            mortal.rabbitmq.kill()
            mortal.postgres.kill()
            await is_back(load)
            consumer.goes_on.set()
            replayed = await partner.send("GET", ACCOUNTS, b"", used)
        await load.finish()
        again, last = burst[:20], made_up_events(1, partner.key.tenant, "a customer")
        await publish(mortal, [*again, *last])

        assert (replayed.status, replayed.code) == (401, "nonce_reused")
        await all_is_well(load, [*burst, *last])
        await each_event_is_handled_once(load.live, consumer.ids)
    await publish(mortal, burst[:5])
    await the_guides_program_takes(5, mortal.consumer_url, tmp_path)
    await nothing_else_is_allowed(mortal.consumer_url)


@pytest.mark.recovery
async def test_a_broker_that_dies_while_it_blocks_publishers_loses_and_doubles_nothing(
    mortal: Mortal,
) -> None:
    load = mortal.load

    async with load.running():
        await load.is_on()
        await mortal.rabbitmq.block_publishers()
        await is_felt(load)
        mortal.rabbitmq.kill()
        await is_back(load)
    await load.finish()

    await all_is_well(load)


async def is_felt(load: Load) -> None:
    """Return when callers of each kind are told, of commands that they send from now on, that these are not done."""
    since = time.monotonic()
    load.hurry()

    async def told() -> bool:
        answered = [c for c in load.commands if c.answer is not None and c.sent_at > since]
        return {command.kind for command in answered if not command.is_done} == set(Kind)

    await eventually("callers of each kind feel it", told, FELT_SECONDS)


async def is_back(load: Load) -> None:
    await load.is_on(seconds=BACK_SECONDS)


async def publish(mortal: Mortal, events: list[Event]) -> None:
    async with event_bus(mortal.rabbitmq.amqp_url) as bus:
        await bus.publish(events)


async def all_is_well(load: Load, made_up: Sequence[Event] = ()) -> None:
    """All agree, each delivery has succeeded, those of `made_up` events among them, and no service has ended."""
    await load.agrees()
    await eventually(
        "events of the test's own making are delivered", partial(are_delivered, load, made_up)
    )
    await deliveries_are_over(load.subscriber)
    stack = load.live.stack
    for name, service in stack.services.items():
        assert service.is_running, f"{name} ended\n{stack.log(name)[-3000:]}"


async def are_delivered(load: Load, events: Sequence[Event]) -> bool:
    return {event.event_id for event in events} <= set(load.subscriber.ids)


async def deliveries_are_over(subscriber: Subscriber) -> None:
    """Each has succeeded; an event came twice only if the database died before its success was recorded."""

    async def is_drained() -> bool:
        return not await subscriber.deliveries(status="pending")

    await eventually("no delivery waits", is_drained, BACK_SECONDS)
    listed = []
    for page in count(1):
        found = await subscriber.deliveries(page=page)
        listed += [(delivery["event_id"], delivery["status"]) for delivery in found]
        if not found:
            break
    received = {(r.headers["webhook-id"], r.body) for r in subscriber.requests}
    assert Counter(listed) == Counter((event_id, "succeeded") for event_id, _ in received)
    assert max(Counter(subscriber.ids).values()) <= 2


async def each_event_is_handled_once(live: Live, handled: list[str]) -> None:
    """By the consumer, of those that it consumes."""
    told = [event["id"] for event in await live.events.fetch() if _kind_of(event) in KINDS]

    async def all_are() -> bool:
        return set(told) <= set(handled)

    await eventually("all are handled", all_are, BACK_SECONDS)
    assert sorted(handled) == sorted(told)


def _kind_of(event: Mapping[str, Any]) -> str:
    return str(event["type"]).partition(".")[0]
