"""How many messages wait, asked of a broker that takes its time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from libs.messaging import queue_depths
from libs.messaging.broker import Broker
from libs.messaging.delivery import Delivery, consume
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.session import Session
from libs.messaging.topology import consumed_queues, queues_of
from tests.integration.amqp_wire import Wire, wire_to
from tests.support.infrastructure import Environment
from tests.support.queues import declare_service
from tests.support.waiting import eventually

SERVICE = "onboarding"


class Consuming:
    """A part that declares and consumes the service's queues, as its consumers do."""

    async def attach(self, session: Session) -> None:
        channel = await session.channel()
        await declare_service(channel, SERVICE)
        for queue in consumed_queues(SERVICE):
            await consume(channel, queue, ignored)

    def detach(self) -> None:
        pass


async def ignored(_: Delivery) -> None:
    raise AssertionError("nothing is sent")


@asynccontextmanager
async def asking(wire: Wire) -> AsyncIterator[tuple[QueueDepths, Broker]]:
    depths = QueueDepths(SERVICE)
    broker = Broker(wire.url, "tests")
    broker.add(Consuming())
    broker.add(depths)
    async with broker.open():
        await broker.start(wait_seconds=30)
        yield depths, broker


async def are_known(depths: QueueDepths) -> bool:
    return await depths.now() == dict.fromkeys(queues_of(SERVICE), 0)


async def test_a_broker_that_answers_late_keeps_its_session(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_depths, "ASK_SECONDS", 0.1)
    async with wire_to(fresh_environment.amqp_url) as wire, asking(wire) as (depths, broker):
        wire.silence()
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
