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
from libs.messaging import consumption, event_consumer, session
from libs.messaging.broker import Broker
from libs.messaging.delivery import Delivery, OnDelivery, consume
from libs.messaging.event_consumer import EventConsumer
from libs.messaging.metrics import CONSUMER_RESTARTS
from libs.messaging.publishing import Properties, Publisher
from libs.messaging.queue_depths import ready_messages
from libs.messaging.session import Session
from libs.messaging.topology import events_queue
from libs.runtime.process import Process
from tests.integration.amqp_wire import is_replaced, wire_to
from tests.integration.readiness import is_not_ready, is_ready
from tests.support.event_bus import event_bus, made_up_events
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.pace import pace, waiting_pace
from tests.support.people import new_key
from tests.support.waiting import eventually

SERVICE = "webhook_dispatcher"
MORE_THAN_A_SOCKET_HOLDS = 200
KILOBYTES_64 = 65536


class Talkative:
    """Fills the socket of the session that the consumer shares, as replies do."""

    _publisher: Publisher | None = None

    async def attach(self, session: Session) -> None:
        self._publisher = await session.publisher(confirms=False)

    def detach(self) -> None:
        self._publisher = None

    async def talk(self) -> None:
        assert self._publisher is not None
        await self._publisher.publish("", "nobody", b"x" * KILOBYTES_64, Properties())

    async def talk_for_ever(self) -> None:
        while True:
            await self.talk()


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
            await broker.start(wait_seconds=5 * pace())
            first, later = (
                made_up_events(1, "tenant", new_key()),
                made_up_events(3, "tenant", new_key()),
            )
            await bus.publish(first)
            await asyncio.wait_for(begun.wait(), 5 * pace())

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


class Unattachable:
    """A part that cannot be attached to the next sessions, such as the consumer of a queue with other arguments."""

    fails = 0
    session: Session

    async def attach(self, session: Session) -> None:
        self.session = session
        if self.fails:
            self.fails -= 1
            raise ConnectionError

    def detach(self) -> None: ...


async def test_no_event_is_taken_before_every_part_is_attached(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that one comes back counts towards its being taken for poison."""
    returns: list[object] = []
    seen: set[str] = set()

    async def noted(channel: AbstractChannel, queue: str, on_delivery: OnDelivery) -> str:
        async def note(message: Delivery) -> None:
            returns.append((message.properties.headers or {}).get("x-delivery-count", 0))
            await on_delivery(message)

        return await consume(channel, queue, note)

    async def record(events: Sequence[Event]) -> Collection[int]:
        seen.update(event.event_id for event in events)
        return ()

    monkeypatch.setattr(consumption, "consume", noted)
    broker = Broker(fresh_environment.amqp_url, SERVICE)
    consumer, part = EventConsumer(SERVICE, record), Unattachable()
    broker.add(consumer)
    broker.add(part)
    async with (
        Process(SERVICE).background("events", consumer.run()),
        broker.open(),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await broker.start(wait_seconds=5 * pace())
        events = made_up_events(1, "tenant", new_key())

        part.fails = 4
        part.session.lose("of the test")
        await bus.publish(events)

        async def is_taken() -> bool:
            return seen == {event.event_id for event in events}

        await eventually("it is taken", is_taken)

    assert part.fails == 0
    assert returns == [0]


@pytest.fixture
def quickly_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that are checked ten times a second, and standstill that is noticed after one on a quiet machine."""
    monkeypatch.setattr(session, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(session, "WATCHES_PER_CHECK", 1)
    monkeypatch.setattr(session, "ANSWER_SECONDS", 2.0 * pace())
    monkeypatch.setattr(session, "LATE_SECONDS", 1.0 * pace())
    monkeypatch.setattr(consumption, "STALL_SECONDS", 1.0 * waiting_pace())


@pytest.mark.usefixtures("quickly_watched")
async def test_an_ack_behind_a_full_write_queue_does_not_outlive_a_connection_that_died_in_silence(
    fresh_environment: Environment,
) -> None:
    """More writers than the write queue has places: the ack waits for one, and no FIN or RST ever comes."""
    seen: set[str] = set()
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def record(events: Sequence[Event]) -> Collection[int]:
        begun.set()
        await may_end.wait()
        seen.update(event.event_id for event in events)
        return ()

    async with wire_to(fresh_environment.amqp_url) as wire:
        broker, process = Broker(wire.url, SERVICE), Process(SERVICE)
        consumer = EventConsumer(SERVICE, record)
        broker.add(consumer)
        talkers = [Talkative() for _ in range(16)]
        for talker in talkers:
            broker.add(talker)
        async with (
            process.background("events", consumer.run()),
            broker.open(),
            event_bus(fresh_environment.amqp_url) as bus,
        ):
            await broker.start(wait_seconds=5 * pace())
            first = made_up_events(1, "tenant", new_key())
            later = made_up_events(3, "tenant", new_key())
            await bus.publish(first)
            await asyncio.wait_for(begun.wait(), 5 * pace())

            wire.stall()
            talking = [
                asyncio.create_task(talker.talk_for_ever(), name="talk") for talker in talkers
            ]
            may_end.set()
            await eventually("it is not ready", partial(is_not_ready, broker))
            await asyncio.wait(talking, timeout=20 * pace())
            assert all(task.done() for task in talking), "no wait outlives its session"
            wire.heal()
            await bus.publish(later)

            async def all_taken() -> bool:
                return seen >= {event.event_id for event in (*first, *later)}

            await eventually("what came later is taken", all_taken)
            await asyncio.gather(*talking, return_exceptions=True)


@pytest.mark.usefixtures("quickly_watched")
async def test_a_consumer_that_gets_nothing_although_events_wait_is_restarted_and_counted(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    tags = iter(["a consumer that the broker does not know of"])

    async def record(events: Sequence[Event]) -> Collection[int]:
        seen.extend(event.event_id for event in events)
        return ()

    async def consume_later(channel: AbstractChannel, queue: str, on_delivery: OnDelivery) -> str:
        return next(tags, None) or await consume(channel, queue, on_delivery)

    monkeypatch.setattr(consumption, "consume", consume_later)
    broker, process = Broker(fresh_environment.amqp_url, SERVICE), Process(SERVICE)
    consumer = EventConsumer(SERVICE, record)
    broker.add(consumer)
    before = restarts()
    async with (
        process.background("events", consumer.run()),
        broker.open(),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await broker.start(wait_seconds=5 * pace())
        event = made_up_events(1, "tenant", new_key())
        await bus.publish(event)

        await eventually("it says so", partial(is_not_ready, broker))
        await eventually("the event is taken", partial(is_in, seen, event[0].event_id))
        await eventually("it is ready again", partial(is_ready, broker))

    assert restarts() == before + 1


@pytest.mark.usefixtures("quickly_watched")
async def test_a_batch_that_is_recorded_slowly_pauses_the_consumer_and_restarts_nothing(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_consumer, "HOLD_SECONDS", 0.2)
    seen: list[str] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def record(events: Sequence[Event]) -> Collection[int]:
        begun.set()
        await may_end.wait()
        seen.extend(event.event_id for event in events)
        return ()

    async with wire_to(fresh_environment.amqp_url) as wire:
        broker, process = Broker(wire.url, SERVICE), Process(SERVICE)
        consumer = EventConsumer(SERVICE, record)
        broker.add(consumer)
        before = restarts()

        async def all_wait() -> bool:
            return await ready_in(fresh_environment, events_queue(SERVICE)) == 21

        async with (
            process.background("events", consumer.run()),
            broker.open(),
            event_bus(fresh_environment.amqp_url) as bus,
        ):
            await broker.start(wait_seconds=5 * pace())
            first, later = (made_up_events(n, "tenant", new_key()) for n in (1, 20))
            await bus.publish(first)
            await asyncio.wait_for(begun.wait(), 5 * pace())
            await bus.publish(later)
            await eventually("it says that it is paused", partial(is_not_ready, broker))
            for _ in range(4):  # sessions lost meanwhile take nothing
                await eventually("it is back", partial(is_replaced, wire, wire.connections))
            # Outlasts the watchdog, which must not strike: there is no condition to wait for.
            await asyncio.sleep(2 * consumption.STALL_SECONDS)
            await eventually("all wait", all_wait)
            may_end.set()
            ids = {event.event_id for event in (*first, *later)}
            await eventually("all are taken", partial(are_in, seen, ids))

    assert restarts() == before


def restarts() -> float:
    return value_of(CONSUMER_RESTARTS.labels(events_queue(SERVICE)))


async def is_in(seen: list[str], event_id: str) -> bool:
    return event_id in seen


async def are_in(seen: list[str], event_ids: set[str]) -> bool:
    return set(seen) >= event_ids


async def ready_in(environment: Environment, queue: str) -> int:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        return await ready_messages(channel, queue)


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

    async def all_delivered() -> bool:
        return await ready_in(fresh_environment, events_queue(SERVICE)) == 0

    broker, process = Broker(fresh_environment.amqp_url, SERVICE), Process(SERVICE)
    consumer = EventConsumer(SERVICE, record)
    broker.add(consumer)
    async with (
        process.background("events", consumer.run()),
        broker.open(),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await broker.start(wait_seconds=5 * pace())
        await bus.publish(made_up_events(1, "tenant", new_key()))
        await eventually("the first is recorded at once", partial(recorded, 1))
        await bus.publish(made_up_events(event_consumer.BATCH - 1, "tenant", new_key()))
        await eventually("the broker has delivered them", all_delivered)
        assert batches == [1]
        await bus.publish(made_up_events(1, "tenant", new_key()))
        await eventually("a full batch", partial(recorded, 1 + event_consumer.BATCH))

    assert batches == [1, event_consumer.BATCH]


async def test_a_background_task_that_is_cancelled_by_what_it_waits_for_ends_the_process() -> None:
    process = Process("tests")
    waited_for: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await waited_for

    async with process.background("waiting", wait()), asyncio.timeout(5 * pace()):
        await asyncio.sleep(0)
        waited_for.cancel()
        with pytest.raises(RuntimeError, match="cancelled by what it waited for"):
            await process.until_failure()
