"""One virtual host for many tests, each of which finds it as the broker's definitions left it.

A new one takes RabbitMQ 0.1 to 0.25 s of processor time, the more the more there are. All are emptied over
one connection: a new one for each would take RabbitMQ 4 ms and the test's process 3.
"""

from __future__ import annotations

import asyncio

import aio_pika
from aio_pika.abc import AbstractConnection

from libs.contracts.table import SERVICES
from libs.messaging.topology import EVENT_CONSUMERS, declare_events, queues_of
from tests.integration.loop_beside import LoopBeside
from tests.support.infrastructure import Environment, Infrastructure

QUEUES = tuple(queue for service in SERVICES for queue in queues_of(service))
HEARTBEAT_SECONDS = 60_000
"""Nothing reads the connection between two tests."""


class RecycledVhost:
    """Queues that a test makes by itself have to be exclusive."""

    def __init__(self, infrastructure: Infrastructure) -> None:
        self._infrastructure = infrastructure
        self._beside = LoopBeside("recycling-vhost")
        self._environment: Environment | None = None
        self._connection: AbstractConnection | None = None
        self._connected_to = ""

    def url(self) -> str:
        """It is made when this is asked for first."""
        if self._environment is None:
            self._environment = self._infrastructure.create()
        return self._environment.amqp_url

    async def empty(self) -> None:
        """As the definitions left it, for the next test. No process of this one may declare a queue any more."""
        url, environment = self.url(), self._environment
        self._environment = None  # where it cannot be emptied, the next test has another one
        await asyncio.wrap_future(self._beside.begin(self._empty(url)))
        self._environment = environment

    def close(self) -> None:
        try:
            self._beside.begin(self._disconnect()).result()
        finally:
            self._beside.close()

    async def _empty(self, url: str) -> None:
        try:
            if self._connection is None or self._connected_to != url:
                await self._disconnect()
                self._connection = await aio_pika.connect(url, heartbeat=HEARTBEAT_SECONDS)
                self._connected_to = url
            await _empty(self._connection)
        except BaseException:
            await self._disconnect()
            raise

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _empty(connection: AbstractConnection) -> None:
    async with connection.channel() as channel:
        for queue in QUEUES:
            await channel.queue_delete(queue, nowait=True)
        for service in EVENT_CONSUMERS:
            await declare_events(channel, service)
