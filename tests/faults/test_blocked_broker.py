"""A broker that blocks publishers by its memory alarm, and then dies blocked, under load: every answer is honest."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest_asyncio

from tests.faults.load import Kind, Load, new_load, waits
from tests.support.infrastructure import Environment
from tests.support.live import Deployment, hands_on
from tests.support.own_servers import OwnRabbitMQ, own_rabbitmq
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack
from tests.support.waiting import eventually

FELT_SECONDS = 20.0
"""Callers who wait for a blocked broker are answered at the gateway's deadline of 8 s."""
BACK_SECONDS = 60.0
"""The node needs up to 15 s of it to start on a busy machine, and quorum queues elect their leaders."""


@dataclass
class Blockable:
    load: Load
    rabbitmq: OwnRabbitMQ


@pytest_asyncio.fixture
async def blockable(fresh_environment: Environment, tmp_path: Path) -> AsyncIterator[Blockable]:
    """A load on a stack whose RabbitMQ is its own."""
    async with AsyncExitStack() as opened:
        rabbitmq = await opened.enter_async_context(own_rabbitmq(fresh_environment.secrets))
        environment = fresh_environment.with_urls(amqp_url=rabbitmq.amqp_url)
        events = RecordedEvents(rabbitmq.amqp_url)
        await events.begin()
        stack = await opened.enter_async_context(running_stack(environment, tmp_path, **waits()))
        live = await opened.enter_async_context(hands_on(Deployment(stack, events)))
        load = await opened.enter_async_context(new_load(live, "blocked"))
        await rabbitmq.settled()
        yield Blockable(load, rabbitmq)


async def test_a_broker_that_blocks_publishers_and_dies_loses_and_doubles_nothing(
    blockable: Blockable,
) -> None:
    load = blockable.load

    async with load.running():
        await load.is_on()
        await blockable.rabbitmq.block_publishers()
        await eventually(
            "callers of each kind feel it", partial(is_felt, load, time.monotonic()), FELT_SECONDS
        )
        blockable.rabbitmq.kill()
        await eventually(
            "everything is carried out again",
            partial(load.is_carried, time.monotonic()),
            BACK_SECONDS,
        )
    await load.finish()

    await load.agrees()
    stack = load.live.stack
    for name, service in stack.services.items():
        assert service.is_running, f"{name} ended\n{stack.log(name)[-3000:]}"


async def is_felt(load: Load, since: float) -> bool:
    """Whether callers of each kind were told, of commands that they sent `since` then, that these are not done."""
    answered = [c for c in load.commands if c.answer is not None and c.sent_at > since]
    return {command.kind for command in answered if not command.is_done} == set(Kind)
