"""Events that are refused reach the dead queue, with the reason where it can be said, and end no consumer."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aio_pika
import pytest
from structlog.testing import capture_logs

from libs.contracts.events import Event
from libs.messaging import event_consumer, poison
from libs.messaging.broker import Broker
from libs.messaging.event_consumer import EventConsumer
from libs.messaging.publishing import Properties, underlying
from libs.messaging.refusing import REASON, Refuser
from libs.messaging.topology import EVENTS, dead_queue, declare_events, events_queue
from libs.runtime.process import Process
from tests.support.event_bus import event_bus, made_up_events
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.people import new_key
from tests.support.queues import next_in
from tests.support.waiting import eventually

SERVICE = "webhook_dispatcher"


class Recorded:
    """Records events, but for those of these ids, which can never be recorded."""

    def __init__(self, *never: str) -> None:
        self.ids: list[str] = []
        self._never = never

    async def record(self, events: Sequence[Event]) -> Collection[int]:
        self.ids.extend(event.event_id for event in events)
        return [place for place, event in enumerate(events) if event.event_id in self._never]

    async def has(self, event_id: str) -> bool:
        return event_id in self.ids


@asynccontextmanager
async def consuming(environment: Environment, recorded: Recorded) -> AsyncIterator[None]:
    broker, process = Broker(environment.amqp_url, SERVICE), Process(SERVICE)
    consumer = EventConsumer(SERVICE, recorded.record)
    broker.add(consumer)
    async with process.background("events", consumer.run()), broker.open():
        await broker.start(wait_seconds=5 * pace())
        yield


async def declare_service_events(environment: Environment) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_events(channel, SERVICE)


async def die_with_all_in_hand(environment: Environment, times: int) -> None:
    """Take one event and die, so often."""
    for _ in range(times):
        connection = await aio_pika.connect(environment.amqp_url)
        channel = await connection.channel()
        await next_in(await channel.get_queue(events_queue(SERVICE)))
        await connection.close()


async def letters_of(environment: Environment, count: int) -> dict[str | None, object]:
    """The reasons of so many letters, by the ids of their events."""
    found: dict[str | None, object] = {}
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        queue = await channel.get_queue(dead_queue(events_queue(SERVICE)))

        async def has_all() -> bool:
            while letter := await queue.get(no_ack=True, fail=False):
                found[letter.message_id] = letter.headers.get(REASON)
            return len(found) >= count

        await eventually("the letters", has_all)
    return found


async def test_an_event_that_ended_every_process_that_took_it_is_dead_lettered_with_its_reason(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_consumer, "SUSPECT_RETURNS", 2)
    monkeypatch.setattr(poison, "POISON_RETURNS", 3)
    recorded = Recorded()
    [deadly, good] = made_up_events(2, "tenant", new_key())
    async with event_bus(fresh_environment.amqp_url) as bus:
        await declare_service_events(fresh_environment)
        await bus.publish([deadly])
        await die_with_all_in_hand(fresh_environment, times=3)
        async with consuming(fresh_environment, recorded):
            letters = await letters_of(fresh_environment, 1)
            await bus.publish([good])
            await eventually("others go on", partial(recorded.has, good.event_id))

    assert letters == {deadly.event_id: "poison"}
    assert recorded.ids == [good.event_id]


async def test_an_event_that_can_never_be_recorded_is_dead_lettered_with_its_reason(
    fresh_environment: Environment,
) -> None:
    never, good = made_up_events(2, "tenant", new_key())
    recorded = Recorded(never.event_id)
    async with (
        consuming(fresh_environment, recorded),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await bus.publish([never, good])
        letters = await letters_of(fresh_environment, 1)
        await eventually("others go on", partial(recorded.has, good.event_id))

    assert letters == {never.event_id: "not_recordable"}


class Double(Properties):
    """The header `amount` is a double beyond what pamqp can encode, as a client of its own sends one."""

    bits = int.from_bytes(struct.pack(">d", 1e300))

    def marshal(self) -> bytes:
        as_integer, as_double = (kind + struct.pack(">q", self.bits) for kind in (b"l", b"d"))
        encoded = super().marshal()
        assert as_integer in encoded
        return encoded.replace(as_integer, as_double)


async def publish_refused(
    environment: Environment, message_id: str, properties: Properties
) -> None:
    """An event whose sender does not emit events of its kind."""
    properties.message_id, properties.message_type = message_id, "person.updated"
    properties.user_id = "ledger_read"
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        published = await underlying(channel)
        await published.basic_publish(b"{}", exchange=EVENTS, properties=properties)


async def test_a_refused_event_with_a_header_that_cannot_be_sent_dies_without_its_reason(
    fresh_environment: Environment,
) -> None:
    recorded = Recorded()
    async with (
        consuming(fresh_environment, recorded),
        event_bus(fresh_environment.amqp_url) as bus,
    ):
        await publish_refused(fresh_environment, "evt_1", Double(headers={"amount": Double.bits}))
        letters = await letters_of(fresh_environment, 1)
        [good] = made_up_events(1, "tenant", new_key())
        await bus.publish([good])
        await eventually("others go on", partial(recorded.has, good.event_id))

    assert letters == {"evt_1": None}
    assert recorded.ids == [good.event_id]


async def test_an_error_in_refusing_an_event_ends_no_consumer_and_the_event_is_moved_without_a_reason(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Refuser, "_publish_copy", fail)
    with capture_logs() as logs:
        async with consuming(fresh_environment, Recorded()):
            await publish_refused(fresh_environment, "evt_1", Properties(headers={}))
            letters = await letters_of(fresh_environment, 1)

    assert letters == {"evt_1": None}
    assert [entry["event"] for entry in logs].count("not_refused") == 1
