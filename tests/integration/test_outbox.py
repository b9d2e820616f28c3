"""An event that was recorded reaches the broker: in order, and never lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage
from sqlalchemy import text

from libs.contracts.customer_views import PersonEventData
from libs.contracts.customers import CustomerStatus
from libs.contracts.events import EVENT_TYPES, Event, new_event
from libs.handling import outbox_relay
from libs.handling.metrics import EVENTS_RETURNED
from libs.handling.outbox_relay import run_relay
from libs.messaging import event_publisher
from libs.messaging.broker import Broker
from libs.messaging.topology import EVENTS, declare_events, events_queue
from libs.persistence import leadership, outbox, relaying
from libs.persistence.engine import Database, open_database
from libs.runtime.process import Process
from tests.integration.amqp_wire import wire_to
from tests.integration.gateway.desk import WAIT_SECONDS, until
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.pace import pace


def an_event(resource: str, sequence: int) -> Event:
    return new_event(
        EVENT_TYPES["person.updated"],
        PersonEventData(
            customer_id=resource,
            first_name="Ada",
            last_name="Lovelace",
            status=CustomerStatus.APPROVED,
            business_customer_id="c1",
        ),
        tenant="tenant",
        customer_id="c1",
        resource_id=resource,
        sequence=sequence,
        at=datetime.now(UTC),
    )


async def record(database: Database, *events: Event) -> None:
    async with database.transaction() as connection:
        await outbox.record(connection, *events)


async def is_empty(database: Database) -> bool:
    async with database.transaction() as connection:
        return (await connection.execute(text("SELECT 1 FROM outbox LIMIT 1"))).first() is None


@asynccontextmanager
async def subscribed(amqp_url: str) -> AsyncIterator[list[AbstractIncomingMessage]]:
    """Every event that is published meanwhile, over a durable queue."""
    received: list[AbstractIncomingMessage] = []

    async def keep(message: AbstractIncomingMessage) -> None:
        received.append(message)

    connection = await aio_pika.connect(amqp_url)
    async with connection, connection.channel() as channel:
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(EVENTS, "#")
        await queue.consume(keep, no_ack=True)
        yield received


@asynccontextmanager
async def relays(amqp_url: str, database: Database, count: int = 1) -> AsyncIterator[None]:
    async with AsyncExitStack() as opened:
        for _ in range(count):
            process, broker = Process("onboarding"), Broker(amqp_url, "onboarding")
            await opened.enter_async_context(broker.open())
            await opened.enter_async_context(run_relay(process, broker, database))
            await broker.start(wait_seconds=WAIT_SECONDS * pace())
        yield


def sequences(messages: Sequence[AbstractIncomingMessage], resource: str) -> list[int]:
    bodies = [json.loads(message.body) for message in messages]
    return [body["sequence"] for body in bodies if body["data"]["customer_id"] == resource]


async def test_two_relays_publish_each_event_once_in_the_order_of_its_resource(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "LEASE_SECONDS", 60.0)  # no other leader follows meanwhile
    amqp_url, count = fresh_environment.amqp_url, 300
    async with subscribed(amqp_url) as received, relays(amqp_url, database, 2):
        for start in range(0, count, 30):
            for resource in ("p1", "p2"):
                events = [an_event(resource, n) for n in range(start, start + 30)]
                await record(database, *events)
        await until(lambda: is_empty(database))
        await until(lambda: enough(received, 2 * count))

    assert sequences(received, "p1") == list(range(count))
    assert sequences(received, "p2") == list(range(count))


async def enough(received: Sequence[object], count: int) -> bool:
    return len(received) >= count


async def test_an_event_is_published_as_the_bytes_that_were_recorded(
    fresh_environment: Environment, database: Database
) -> None:
    event = an_event("p1", 7)
    async with (
        subscribed(fresh_environment.amqp_url) as received,
        relays(fresh_environment.amqp_url, database),
    ):
        await record(database, event)
        await until(lambda: enough(received, 1))

    message = received[0]
    assert message.body == event.body
    assert (message.routing_key, message.message_id) == ("person.updated", event.event_id)
    assert message.headers == {
        "tenant": "tenant",
        "customer_id": "c1",
        "resource_id": "p1",
        "sequence": 7,
    }
    assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT


async def test_an_event_of_a_transaction_that_failed_is_never_published(
    fresh_environment: Environment, database: Database
) -> None:
    async with (
        subscribed(fresh_environment.amqp_url) as received,
        relays(fresh_environment.amqp_url, database),
    ):
        with pytest.raises(ZeroDivisionError):
            async with database.transaction() as connection:
                await outbox.record(connection, an_event("p1", 1))
                raise ZeroDivisionError
        await record(database, an_event("p1", 2))
        await until(lambda: enough(received, 1))

    assert sequences(received, "p1") == [2]


async def test_what_was_published_and_not_deleted_is_published_again(database: Database) -> None:
    """As when the process is killed between the confirm and the deletion."""
    published: list[str] = []

    class Killed(Exception):
        pass

    async def publish_and_die(events: Sequence[Event]) -> Collection[str]:
        published.extend(event.event_id for event in events)
        raise Killed

    async def publish(events: Sequence[Event]) -> Collection[str]:
        published.extend(event.event_id for event in events)
        return ()

    events = [an_event("p1", n) for n in range(3)]
    await record(database, *events)
    with pytest.raises(Killed):
        await relaying.Relay(database, publish_and_die).run_while_leading()
    relay = asyncio.create_task(relaying.Relay(database, publish).run_while_leading())
    await until(lambda: is_empty(database))
    relay.cancel()
    await asyncio.wait({relay})

    assert published == [event.event_id for event in events] * 2


async def test_a_relay_that_dies_is_replaced_by_another(database: Database) -> None:
    led, took_over = asyncio.Event(), asyncio.Event()

    async def never(_events: Sequence[Event]) -> Collection[str]:
        led.set()
        await asyncio.Event().wait()
        return ()

    async def publish(_events: Sequence[Event]) -> Collection[str]:
        took_over.set()
        return ()

    await record(database, an_event("p1", 1))
    leader = asyncio.create_task(relaying.Relay(database, never).run_while_leading())
    async with asyncio.timeout(10 * pace()):
        await led.wait()
    follower = asyncio.create_task(relaying.Relay(database, publish).run_while_leading())
    with pytest.raises(TimeoutError):  # longer than it takes to look for something to publish
        await asyncio.wait_for(took_over.wait(), 2 * relaying.POLL_SECONDS)

    leader.cancel()

    assert await until(lambda: is_empty(database))
    assert took_over.is_set()
    follower.cancel()
    await asyncio.wait({leader, follower})


async def test_a_broken_way_to_the_broker_loses_no_event_and_keeps_the_order(
    fresh_environment: Environment, database: Database
) -> None:
    count = 200
    async with (
        wire_to(fresh_environment.amqp_url) as wire,
        subscribed(fresh_environment.amqp_url) as received,
        relays(wire.url, database),
    ):
        for start in range(0, count, 20):
            await record(database, *(an_event("p1", n) for n in range(start, start + 20)))
            if start in (40, 120):
                wire.cut()
        await until(lambda: is_empty(database))
        await until(lambda: last_is(received, count - 1))

    arrived = sequences(received, "p1")
    assert list(dict.fromkeys(arrived)) == list(range(count))


async def last_is(received: Sequence[AbstractIncomingMessage], sequence: int) -> bool:
    return bool(received) and sequences(received, "p1")[-1] == sequence


async def test_an_event_is_relayed_after_its_commit_without_waiting_for_the_poll(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "POLL_SECONDS", 3600.0)
    async with (
        subscribed(fresh_environment.amqp_url) as received,
        relays(fresh_environment.amqp_url, database),
    ):
        for count in range(1, 4):
            await record(database, an_event("p1", count))

            await until(lambda count=count: enough(received, count))  # type: ignore[misc]

    assert sequences(received, "p1") == [1, 2, 3]


@pytest.mark.parametrize(("others_seconds", "polls"), [(0.0, "QUIET_"), (3600.0, "")])
async def test_events_of_other_processes_are_found_by_a_poll_that_is_rare_once_there_were_none(
    others_seconds: float,
    polls: str,
    fresh_environment: Environment,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relaying, "OTHERS_SECONDS", others_seconds)
    monkeypatch.setattr(relaying, "POLL_SECONDS", 3600.0)
    monkeypatch.setattr(relaying, "QUIET_POLL_SECONDS", 3600.0)
    monkeypatch.setattr(relaying, f"{polls}POLL_SECONDS", 0.01)
    other = open_database(fresh_environment.database_urls["onboarding"], "onboarding")
    async with (
        subscribed(fresh_environment.amqp_url) as received,
        relays(fresh_environment.amqp_url, database),
    ):
        for count in range(1, 4):
            await record(other, an_event("p1", count))

            await until(lambda count=count: enough(received, count))  # type: ignore[misc]
    await other.close()

    assert sequences(received, "p1") == [1, 2, 3]


async def test_a_commit_wakes_the_relay_only_if_it_recorded_events(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as connection:
            await outbox.record(connection, an_event("p1", 1))
            raise ZeroDivisionError
    async with database.transaction() as connection:
        await connection.execute(text("SELECT 1"))
    assert not database.events_recorded.is_set()

    await record(database, an_event("p1", 1))

    assert database.events_recorded.is_set()


# Events that no queue takes


@asynccontextmanager
async def routing(amqp_url: str, *patterns: str) -> AsyncIterator[None]:
    """Only events of these types have a queue: the one of the dispatcher is bound to them instead of to all."""
    connection = await aio_pika.connect(amqp_url)
    async with connection, connection.channel() as channel:
        await declare_events(channel, "webhook_dispatcher")
        queue = await channel.get_queue(events_queue("webhook_dispatcher"), ensure=False)
        await queue.unbind(EVENTS, "#")
        for pattern in patterns:
            await queue.bind(EVENTS, pattern)
        yield
        await queue.bind(EVENTS, "#")


async def set_aside(database: Database) -> list[tuple[str, int]]:
    async with database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT resource_id, sequence FROM outbox_unroutable ORDER BY id")
        )
        return [(row.resource_id, row.sequence) for row in rows]


def renamed(event: Event, kind: str) -> Event:
    return replace(event, type=kind)


async def test_an_event_that_no_queue_takes_is_kept_holds_back_its_aggregate_and_no_other(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "UNROUTABLE_SECONDS", 3600.0)
    amqp_url = fresh_environment.amqp_url
    returned = value_of(EVENTS_RETURNED)
    # Recorded before a relay leads: its first round sets it aside, and does not publish it a second time.
    await record(database, renamed(an_event("lost", 1), "customer.created"))
    async with routing(amqp_url, "person.*"), relays(amqp_url, database):
        await until(lambda: set_aside(database))

        await record(database, an_event("lost", 2), an_event("p1", 1))
        await until(lambda: is_empty(database))

        assert await set_aside(database) == [("lost", 1), ("lost", 2)]
        assert value_of(EVENTS_RETURNED) == returned + 1
        async with database.transaction() as connection:
            assert await relaying.count_unroutable(connection) == 2


async def test_an_event_that_no_queue_took_is_published_once_one_does_in_its_order(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "UNROUTABLE_SECONDS", 0.2)
    monkeypatch.setattr(relaying, "OTHERS_SECONDS", 0.0)
    monkeypatch.setattr(relaying, "QUIET_POLL_SECONDS", 3600.0)
    amqp_url = fresh_environment.amqp_url

    async def none_is_set_aside() -> bool:
        return not await set_aside(database)

    # The queue of the dispatcher takes none until the end: it would take some before another is there.
    async with relays(amqp_url, database), routing(amqp_url):
        await record(database, an_event("p1", 1))
        await until(lambda: set_aside(database))
        await record(database, *(an_event("p1", n) for n in (2, 3, 4)), an_event("p2", 1))
        await until(lambda: is_empty(database))
        assert len(await set_aside(database)) == 5

        async with subscribed(amqp_url) as received:
            await until(lambda: enough(received, 5))
            await until(none_is_set_aside)

        assert sequences(received, "p1") == [1, 2, 3, 4]


async def test_an_event_that_a_queue_of_a_consumer_takes_waits_for_the_dispatcher_that_was_never_there(
    fresh_environment: Environment, database: Database
) -> None:
    amqp_url = fresh_environment.amqp_url
    async with subscribed(amqp_url) as received, relays(amqp_url, database):
        await record(database, *(an_event("p1", n) for n in (1, 2, 3)))
        await until(lambda: is_empty(database))
        await until(lambda: enough(received, 3))

    connection = await aio_pika.connect(amqp_url)
    async with connection, connection.channel() as channel:
        await declare_events(channel, "webhook_dispatcher")
        queue = await channel.declare_queue(events_queue("webhook_dispatcher"), passive=True)
    assert queue.declaration_result.message_count == 3


# Readiness


async def readiness_of_a_relay(
    amqp_url: str, database: Database, opened: AsyncExitStack
) -> Process:
    process, broker = Process("onboarding"), Broker(amqp_url, "onboarding")
    await opened.enter_async_context(broker.open())
    await opened.enter_async_context(run_relay(process, broker, database))
    await broker.start(wait_seconds=WAIT_SECONDS * pace())
    process.readiness.switch(True)
    return process


async def test_who_relays_and_who_stands_by_are_ready(
    fresh_environment: Environment, database: Database
) -> None:
    async with AsyncExitStack() as opened:
        processes = [
            await readiness_of_a_relay(fresh_environment.amqp_url, database, opened)
            for _ in range(2)
        ]

        for process in processes:
            await until(lambda process=process: is_ready(process))  # type: ignore[misc]


async def is_ready(process: Process) -> bool:
    return not await process.readiness.failures()


async def test_a_relay_with_events_that_the_broker_does_not_confirm_is_not_ready(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_relay, "PROGRESS_SECONDS", 2.0)
    monkeypatch.setattr(event_publisher, "PUBLISH_SECONDS", 1.0)
    async with AsyncExitStack() as opened:
        wire = await opened.enter_async_context(wire_to(fresh_environment.amqp_url))
        process = await readiness_of_a_relay(wire.url, database, opened)
        await until(lambda: is_ready(process))

        wire.silence()
        await record(database, an_event("p1", 1))

        await until(lambda: is_not_relaying(process))
        wire.cut()
        await until(lambda: is_ready(process))
        await until(lambda: is_empty(database))


async def is_not_relaying(process: Process) -> bool:
    return "outbox-relay" in await process.readiness.failures()
