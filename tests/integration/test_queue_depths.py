"""How many messages wait, asked of a broker that takes its time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from libs.messaging import queue_depths
from libs.messaging.broker import Broker
from libs.messaging.consumption import Consumption
from libs.messaging.delivery import Delivery
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.session import Session
from libs.messaging.topology import commands_queue, consumed_queues, dead_queue, queues_of
from tests.integration.amqp_wire import Wire, wire_to
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.queues import declare_service
from tests.support.waiting import eventually

SERVICE = "onboarding"


class Consuming:
    """A part that declares and consumes the service's queues, as its consumers do."""

    def __init__(self) -> None:
        self.consumptions = [
            Consumption(
                queue,
                partial(declare_service, service=SERVICE),
                1,
                ignored,
                has_dead_queue=False,
                works=lambda: False,
                waits=lambda: False,
            )
            for queue in consumed_queues(SERVICE)
        ]

    async def attach(self, session: Session) -> None:
        for consumption in self.consumptions:
            await consumption.attach(session)

    def detach(self) -> None:
        for consumption in self.consumptions:
            consumption.detach()


async def ignored(_: Delivery) -> None:
    raise AssertionError("nothing is sent")


@asynccontextmanager
async def asking(
    wire: Wire, consuming: Consuming | None = None
) -> AsyncIterator[tuple[QueueDepths, Broker]]:
    depths = QueueDepths(SERVICE)
    broker = Broker(wire.url, "tests")
    broker.add(consuming or Consuming())
    broker.add(depths)
    async with broker.open():
        await broker.start(wait_seconds=30 * pace())
        yield depths, broker


async def are_known(depths: QueueDepths) -> bool:
    return await depths.now() == dict.fromkeys(queues_of(SERVICE), 0)


async def test_a_broker_that_answers_late_keeps_its_session(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with wire_to(fresh_environment.amqp_url) as wire, asking(wire) as (depths, broker):
        wire.silence()
        with monkeypatch.context() as patch:
            patch.setattr(queue_depths, "ASK_SECONDS", 0.1)
            unknown = await depths.now()
        wire.heal()

        await eventually("the depths are known", partial(are_known, depths))
        await broker.ping()

    assert unknown is None
    assert wire.connections == 1


async def test_while_the_leader_of_a_queue_does_not_answer_its_depth_is_not_known(
    fresh_environment: Environment,
) -> None:
    async with wire_to(fresh_environment.amqp_url) as wire, asking(wire) as (depths, _):
        wire.forget_counts()
        unknown = await depths.now()
        wire.know_counts()

        await eventually("the depths are known", partial(are_known, depths))

    assert unknown is None


async def test_a_dead_queue_whose_leader_alone_does_not_answer_is_not_taken_for_empty(
    fresh_environment: Environment,
) -> None:
    async with wire_to(fresh_environment.amqp_url) as wire, asking(wire) as (depths, _):
        wire.silence_leader(dead_queue(commands_queue(SERVICE)))
        unknown = await depths.now()
        wire.know_counts()

        await eventually("the depths are known", partial(are_known, depths))

    assert unknown is None


async def test_the_depths_of_a_service_that_is_paused_are_known(
    fresh_environment: Environment,
) -> None:
    consuming = Consuming()
    async with (
        wire_to(fresh_environment.amqp_url) as wire,
        asking(wire, consuming) as (depths, _),
    ):
        for consumption in consuming.consumptions:
            await consumption.pause()

        await eventually("the depths are known", partial(are_known, depths))
