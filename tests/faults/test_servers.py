"""The broker and the database die under load: every answer is honest, and everything is done and delivered once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults.load import Kind, Load, new_load, waits
from tests.support.api import signed_headers
from tests.support.infrastructure import Environment
from tests.support.live import ACCOUNTS, Deployment, hands_on
from tests.support.own_servers import OwnPostgres, OwnRabbitMQ, own_postgres, own_rabbitmq
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

FELT_SECONDS = 20.0
"""Callers who wait for a blocked broker are answered at the gateway's deadline of 6 s."""
BACK_SECONDS = 60.0
"""The node needs up to 15 s of it to start on a busy machine, quorum queues elect their leaders, and circuits that
opened meanwhile come back after pauses of up to 30 s.
"""


@dataclass
class Mortal:
    """A load on a stack whose servers are its own."""

    load: Load
    postgres: OwnPostgres
    rabbitmq: OwnRabbitMQ


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
        stack = await opened.enter_async_context(running_stack(environment, tmp_path, **waits()))
        live = await opened.enter_async_context(hands_on(Deployment(stack, events)))
        load = await opened.enter_async_context(new_load(live, "mortal"))
        await rabbitmq.settled()
        yield Mortal(load, postgres, rabbitmq)


async def test_a_broker_that_blocks_publishers_and_then_dies_with_the_database_loses_and_doubles_nothing(
    mortal: Mortal,
) -> None:
    load = mortal.load
    partner = load.live.partner

    async with load.running():
        await load.is_on()
        await mortal.rabbitmq.block_publishers()
        await is_felt(load)
        await mortal.rabbitmq.unblock_publishers()
        await is_back(load)

        used = signed_headers(partner.key, "GET", ACCOUNTS)
        assert (await partner.send("GET", ACCOUNTS, b"", used)).status == 200
        await load.in_flight()
        mortal.rabbitmq.kill()
        mortal.postgres.kill()
        await is_back(load)
        replayed = await partner.send("GET", ACCOUNTS, b"", used)
    await load.finish()

    assert (replayed.status, replayed.code) == (401, "nonce_reused")
    await all_is_well(load)


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

    async def told() -> bool:
        answered = [c for c in load.commands if c.answer is not None and c.sent_at > since]
        return {command.kind for command in answered if not command.is_done} == set(Kind)

    await eventually("callers of each kind feel it", told, FELT_SECONDS)


async def is_back(load: Load) -> None:
    again = partial(load.is_carried, time.monotonic())
    await eventually("everything is carried out again", again, BACK_SECONDS)


async def all_is_well(load: Load) -> None:
    """All agree, each delivery has succeeded, and no service has ended."""
    await load.agrees()
    await deliveries_are_over(load.subscriber)
    stack = load.live.stack
    for name, service in stack.services.items():
        assert service.is_running, f"{name} ended\n{stack.log(name)[-3000:]}"


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
