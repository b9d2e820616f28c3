"""At a cluster a consumer notices that the broker assigns messages to it and delivers none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from structlog.testing import capture_logs

from libs.messaging import probing, session
from libs.messaging.broker import Broker
from libs.messaging.command_consumer import CommandConsumer
from libs.messaging.metrics import CONSUMER_RESTARTS
from libs.messaging.topology import dead_queue
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.test_command_consumer import (
    QUEUE,
    SERVICE,
    Inbox,
    a_channel,
    are_recorded,
    has,
    publish,
    ready,
)
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.pace import pace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _quickly_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(probing, "IDLE_SECONDS", 0.3)


@asynccontextmanager
async def consuming(url: str, inbox: Inbox) -> AsyncIterator[None]:
    broker = Broker(url, SERVICE, probes=True)
    consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
    broker.add(consumer)
    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        yield
        await consumer.stop(5)


def probes_of(wire: Wire) -> int:
    return wire.sent.count(b"bankside.probe")


async def has_probed(wire: Wire, times: int) -> bool:
    return probes_of(wire) >= times


async def has_connected(wire: Wire, times: int) -> bool:
    return wire.connections >= times


async def test_commands_that_do_not_arrive_are_carried_out_in_other_sessions(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "UNANSWERED_SECONDS", 1.0)
    url = fresh_environment.amqp_url
    inbox = Inbox()
    async with a_channel(fresh_environment) as channel, wire_to(url) as bad, wire_to(url) as good:
        async with consuming(bad.url, inbox), consuming(good.url, inbox):
            with capture_logs() as logs:
                bad.swallow_deliveries()
                ids = await publish(channel, 10)
                await eventually("all are recorded", partial(are_recorded, inbox, ids))
                await eventually("there is another session", partial(has_connected, bad, 2))
            await eventually("none is left", partial(has, channel, QUEUE, 0))
        dead = await ready(channel, dead_queue(QUEUE))

    assert [log["queue"] for log in logs if log["event"] == "consumer_unserved"] == [QUEUE]
    assert good.connections == 1
    assert dead == 0


async def test_a_session_probes_before_it_was_idle(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "IDLE_SECONDS", 3600.0)
    async with wire_to(fresh_environment.amqp_url) as wire, consuming(wire.url, Inbox()):
        await eventually("it probes", partial(has_probed, wire, 1))


async def test_a_consumer_that_is_served_probes_and_keeps_its_session(
    fresh_environment: Environment,
) -> None:
    inbox = Inbox()
    before = value_of(CONSUMER_RESTARTS.labels(QUEUE))
    async with a_channel(fresh_environment) as channel, wire_to(fresh_environment.amqp_url) as wire:
        async with consuming(wire.url, inbox):
            await eventually("it probes on", partial(has_probed, wire, 4))
            ids = await publish(channel, 3)
            await eventually("all are recorded", partial(are_recorded, inbox, ids))
        left = await ready(channel, QUEUE), await ready(channel, dead_queue(QUEUE))

    assert wire.connections == 1
    assert left == (0, 0)
    assert sorted(inbox.recorded) == sorted(ids)
    assert value_of(CONSUMER_RESTARTS.labels(QUEUE)) == before
