"""Events are taken for as long as there is a broker, whatever becomes of a connection to it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel

from libs.contracts.events import Event
from libs.messaging import broker as broker_module
from libs.messaging import event_consumer
from libs.messaging.broker import Broker, Session
from libs.messaging.event_consumer import EventConsumer
from libs.runtime.process import Process
from tests.integration.amqp_wire import wire_to
from tests.support.event_bus import event_bus, made_up_events
from tests.support.infrastructure import Environment
from tests.support.people import new_key
from tests.support.waiting import eventually

SERVICE = "webhook_dispatcher"
MORE_THAN_A_SOCKET_HOLDS = 200
KILOBYTES_64 = 65536


class Talkative:
    """Fills the socket of the session that the consumer shares, as replies do."""

    _channel: AbstractChannel | None = None

    async def attach(self, session: Session) -> None:
        self._channel = await session.channel(confirms=False)

    def detach(self) -> None:
        self._channel = None

    async def talk(self) -> None:
        assert self._channel is not None
        message = aio_pika.Message(b"x" * KILOBYTES_64)
        await self._channel.default_exchange.publish(message, "nobody", mandatory=False)


async def test_an_ack_that_was_waiting_when_the_connection_died_does_not_end_the_consumer(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "HEARTBEAT_SECONDS", 1)
    seen: set[str] = set()
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def record(events: Sequence[Event]) -> Collection[int]:
        begun.set()
        await may_end.wait()
        seen.update(event.event_id for event in events)
        return ()

    async with wire_to(fresh_environment.amqp_url) as wire:
        broker = Broker(wire.url, SERVICE)
        consumer, talkative = EventConsumer(SERVICE, record), Talkative()
        broker.add(consumer)
        broker.add(talkative)
        process = Process(SERVICE)
        async with (
            process.background("events", consumer.run()),
            broker.open(),
            event_bus(fresh_environment.amqp_url) as bus,
        ):
            await broker.start(wait_seconds=5)
            first, later = (
                made_up_events(1, "tenant", new_key()),
                made_up_events(3, "tenant", new_key()),
            )
            await bus.publish(first)
            await asyncio.wait_for(begun.wait(), 5)

            wire.stall()
            talking = [
                asyncio.create_task(talkative.talk()) for _ in range(MORE_THAN_A_SOCKET_HOLDS)
            ]
            await asyncio.wait(talking, timeout=0.2)
            may_end.set()
            await asyncio.wait(talking, timeout=20)
            wire.cut()
            await bus.publish(later)

            async def all_taken() -> bool:
                return seen >= {event.event_id for event in (*first, *later)}

            await eventually("what came later is taken", all_taken)
            await asyncio.gather(*talking, return_exceptions=True)


async def test_few_events_are_recorded_together_and_a_full_batch_waits_for_nothing(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_consumer, "APART_SECONDS", 3600)
    batches: list[int] = []

    async def record(events: Sequence[Event]) -> Collection[int]:
        batches.append(len(events))
        return ()

    async def recorded(count: int) -> bool:
        return sum(batches) == count

    broker, process = Broker(fresh_environment.amqp_url, SERVICE), Process(SERVICE)
    consumer = EventConsumer(SERVICE, record)
    broker.add(consumer)
    async with (
        process.background("events", consumer.run()),
        broker.open(),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await broker.start(wait_seconds=5)
        await bus.publish(made_up_events(1, "tenant", new_key()))
        await eventually("the first is recorded at once", partial(recorded, 1))
        await bus.publish(made_up_events(event_consumer.BATCH - 1, "tenant", new_key()))
        await asyncio.sleep(0.2)
        assert batches == [1]
        await bus.publish(made_up_events(1, "tenant", new_key()))
        await eventually("a full batch", partial(recorded, 1 + event_consumer.BATCH))

    assert batches == [1, event_consumer.BATCH]


async def test_a_background_task_that_is_cancelled_by_what_it_waits_for_ends_the_process() -> None:
    process = Process("tests")
    waited_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await waited_for

    async with process.background("waiting", wait()), asyncio.timeout(5):
        await asyncio.sleep(0)
        waited_for.cancel()
        with pytest.raises(RuntimeError, match="cancelled by what it waited for"):
            await process.until_failure()
