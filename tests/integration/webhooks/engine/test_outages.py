"""The engine goes on by itself after an outage, in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused

from deploy.rabbitmq.event_consumer import event_consumer_definitions
from libs.client.event_queue import EventQueueConsumer
from libs.contracts.events import Event
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.event_publisher import EventPublisher
from libs.messaging.topology import EVENTS
from libs.persistence.engine import open_database
from libs.specs.reference.guides import FOLDER
from tests.integration.webhooks.engine.receiver import receiving
from tests.integration.webhooks.engine.rig import SERVICE, Rig, an_event
from tests.support.client_packages import blocks
from tests.support.infrastructure import START_SECONDS, Environment
from tests.support.keys import storage_of
from tests.support.own_servers import OwnRabbitMQ, own_postgres, own_rabbitmq
from tests.support.waiting import eventually


async def is_over(rig: Rig, subscription_id: UUID) -> bool:
    return not await rig.deliveries(subscription_id)


async def got(rig: Rig, path: str, count: int) -> bool:
    return len(set(rig.receiver.ids_of(path))) >= count


async def test_what_is_published_while_the_database_is_away_is_delivered_when_it_is_back(
    fresh_environment: Environment,
) -> None:
    secrets = fresh_environment.secrets
    async with own_postgres(fresh_environment) as postgres, receiving() as receiver:
        database = open_database(postgres.database_urls[SERVICE], SERVICE, pool_size=30)
        rig = Rig(database, fresh_environment.amqp_url, storage_of(secrets, SERVICE), receiver)
        subscription = await rig.subscribe("/a")
        events = [an_event(n) for n in range(600)]

        async with rig.engine() as publisher:
            await publisher.publish(events[:200])
            await eventually("some", lambda: got(rig, "/a", 50))
            postgres.kill()
            await publisher.publish(events[200:])
            await eventually("all of them", lambda: got(rig, "/a", 600), seconds=60)
            await rig.leases_end()  # that were taken as the server died
            await eventually("nothing left", lambda: is_over(rig, subscription), seconds=60)
        await database.close()

    assert set(receiver.ids_of("/a")) == {event.event_id for event in events}


async def test_what_was_taken_when_the_broker_died_is_delivered_once(
    rig: Rig, fresh_environment: Environment, tmp_path: Path
) -> None:
    """By webhooks, and to a program with a queue of its own, which may do nothing else at the broker."""
    subscription = await rig.subscribe("/a")
    events = [an_event(n) for n in range(400)]
    handled: list[str] = []

    async def handle(event: Event) -> None:
        handled.append(event.event_id)

    async def handled_all() -> bool:
        return len(set(handled)) == len(events)

    async with own_rabbitmq(fresh_environment.secrets) as rabbitmq:
        rig.amqp_url = rabbitmq.amqp_url
        own_url = await asyncio.to_thread(with_consumer, rabbitmq)
        consuming = asyncio.create_task(
            EventQueueConsumer(own_url, f"{CONSUMER}.events", handle).run(), name="books"
        )
        async with rig.engine() as publisher:
            await rabbitmq.settled()
            await publisher.publish(events[:200])
            rabbitmq.kill()
            some_again = [*events[:20], *events[200:]]
            await eventually("it is back", lambda: published(publisher, some_again), seconds=60)
            await eventually("all of them", lambda: got(rig, "/a", 400), seconds=60)
            await eventually("nothing left", lambda: is_over(rig, subscription))
            await eventually("all are handled", handled_all, seconds=60)
            assert not consuming.done()
            consuming.cancel()
            await asyncio.wait({consuming})
            await publisher.publish(events[:5])
        await the_guides_program_takes(5, own_url, tmp_path)
        await nothing_else_is_allowed(own_url)

    assert sorted(rig.receiver.ids_of("/a")) == sorted(event.event_id for event in events)
    assert handled == list(dict.fromkeys(handled))


CONSUMER = "books"
PASSWORD = "a password of a consumer"


def with_consumer(rabbitmq: OwnRabbitMQ) -> str:
    """Make it as operators do; its URL."""
    at = urlsplit(rabbitmq.amqp_url)
    vhost = at.path.removeprefix("/")
    document = event_consumer_definitions(CONSUMER, PASSWORD, types=["person.*"], vhost=vhost)
    server, *_ = rabbitmq.node.command
    for _ in range(2):  # the second time nothing changes
        subprocess.run(
            [str(Path(server).with_name("rabbitmqctl")), "--quiet", "import_definitions"],
            env=dict(rabbitmq.node.env),
            input=json.dumps(document).encode(),
            stdout=subprocess.DEVNULL,
            timeout=START_SECONDS,
            check=True,
        )
    password = PASSWORD.replace(" ", "%20")
    return at._replace(netloc=f"{CONSUMER}:{password}@{at.netloc.rpartition('@')[2]}").geturl()


async def the_guides_program_takes(count: int, url: str, folder: Path) -> None:
    (program,) = blocks(FOLDER / "queues.md", "python consumer")
    environment = os.environ | {"BOOKS_AMQP_URL": url, "PYTHONPATH": str(Path.cwd())}

    async def stored() -> bool:
        assert process.returncode is None
        with contextlib.closing(sqlite3.connect(folder / "books.sqlite")) as books:
            try:
                [(rows,)] = books.execute("SELECT count(*) FROM event")
            except sqlite3.OperationalError:  # the program has not begun
                return False
        return bool(rows == count)

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=folder, env=environment
    )
    try:
        await eventually("the program has stored the events", stored)
    finally:
        process.terminate()
        await process.wait()


async def nothing_else_is_allowed(url: str) -> None:
    async def publish(channel: AbstractChannel) -> None:
        exchange = await channel.get_exchange(EVENTS, ensure=False)
        await exchange.publish(aio_pika.Message(b"{}"), "person.created")

    async def read(channel: AbstractChannel) -> None:
        queue = await channel.get_queue(f"{SERVICE}.events", ensure=False)
        await queue.get(fail=False)

    async def bind(channel: AbstractChannel) -> None:
        queue = await channel.get_queue(f"{CONSUMER}.events", ensure=False)
        await queue.bind(EVENTS, "#")

    async def declare(channel: AbstractChannel) -> None:
        await channel.declare_queue("another", durable=True)

    async with await aio_pika.connect(url) as connection:
        for attempt in (publish, read, bind, declare):
            with pytest.raises(ChannelAccessRefused):
                await attempt(await connection.channel())


async def published(publisher: EventPublisher, events: list[Event]) -> bool:
    done = False
    try:
        await publisher.publish(events)
        done = True
    except* BROKER_ERRORS:
        pass  # it is tried again
    return done
