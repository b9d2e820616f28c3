"""A program with a user and a queue of its own at the broker, made as operators make them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused

from deploy.rabbitmq.event_consumer import event_consumer_definitions
from libs.client.event_queue import EventQueueConsumer
from libs.contracts.events import Event
from libs.messaging.topology import EVENTS
from libs.specs.reference.guides import FOLDER
from tests.support.client_packages import blocks
from tests.support.infrastructure import START_SECONDS
from tests.support.own_servers import OwnRabbitMQ
from tests.support.waiting import eventually

CONSUMER = "books"
QUEUE = f"{CONSUMER}.events"
PASSWORD = "a password of a consumer"
KINDS = ("person", "wire")
"""Of the events that it consumes."""


def with_consumer(rabbitmq: OwnRabbitMQ) -> str:
    """Make the user and the queue as operators do; the consumer's URL."""
    at = urlsplit(rabbitmq.amqp_url)
    vhost = at.path.removeprefix("/")
    types = [f"{kind}.*" for kind in KINDS]
    document = event_consumer_definitions(CONSUMER, PASSWORD, types=types, vhost=vhost)
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


@dataclass(frozen=True)
class Handling:
    """What a consumer has handled."""

    ids: list[str] = field(default_factory=list)
    """Of events, in their order."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, the consumer stays in the event that it handles."""

    async def handle(self, event: Event) -> None:
        self.ids.append(event.event_id)
        await self.goes_on.wait()


@contextlib.asynccontextmanager
async def consuming(url: str) -> AsyncIterator[Handling]:
    """A consumer runs for as long as the block. It must not end by itself."""
    handling = Handling()
    handling.goes_on.set()
    running = asyncio.create_task(
        EventQueueConsumer(url, QUEUE, handling.handle).run(), name=CONSUMER
    )
    try:
        yield handling
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait({running})


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
    """The consumer neither publishes, nor reads another queue, nor binds or declares one."""

    async def publish(channel: AbstractChannel) -> None:
        exchange = await channel.get_exchange(EVENTS, ensure=False)
        await exchange.publish(aio_pika.Message(b"{}"), "person.created")

    async def read(channel: AbstractChannel) -> None:
        queue = await channel.get_queue("webhook_dispatcher.events", ensure=False)
        await queue.get(fail=False)

    async def bind(channel: AbstractChannel) -> None:
        queue = await channel.get_queue(QUEUE, ensure=False)
        await queue.bind(EVENTS, "#")

    async def declare(channel: AbstractChannel) -> None:
        await channel.declare_queue("another", durable=True)

    async with await aio_pika.connect(url) as connection:
        for attempt in (publish, read, bind, declare):
            with pytest.raises(ChannelAccessRefused):
                await attempt(await connection.channel())
