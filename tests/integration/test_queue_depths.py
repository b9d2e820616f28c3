"""How many messages wait, asked of a broker that takes its time."""

from __future__ import annotations

import pytest

from libs.messaging import queue_depths
from libs.messaging.broker import Broker
from libs.messaging.queue_depths import QueueDepths
from libs.messaging.session import Session
from libs.messaging.topology import queues_of
from tests.integration.amqp_wire import wire_to
from tests.support.infrastructure import Environment
from tests.support.queues import declare_service
from tests.support.waiting import eventually

SERVICE = "onboarding"


class Declared:
    """A part that declares the service's queues, as its consumers do."""

    async def attach(self, session: Session) -> None:
        await declare_service(await session.channel(), SERVICE)

    def detach(self) -> None:
        pass


async def test_a_broker_that_answers_late_keeps_its_session(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_depths, "ASK_SECONDS", 0.1)
    depths = QueueDepths(SERVICE)
    async with wire_to(fresh_environment.amqp_url) as wire:
        broker = Broker(wire.url, "tests")
        broker.add(Declared())
        broker.add(depths)
        async with broker.open():
            await broker.start(wait_seconds=30)

            wire.silence()
            unknown = await depths.now()
            wire.heal()

            async def is_known() -> bool:
                return await depths.now() == dict.fromkeys(queues_of(SERVICE), 0)

            await eventually("the depths are known", is_known)
            await broker.ping()

    assert unknown is None
    assert wire.connections == 1
