"""One virtual host for many tests, each of which finds it as the broker's definitions left it.

A new one takes RabbitMQ 0.1 to 0.25 s of processor time, the more the more there are.
"""

from __future__ import annotations

import aio_pika

from libs.contracts.table import SERVICES
from libs.messaging.topology import EVENT_CONSUMERS, declare_events, queues_of
from tests.support.infrastructure import Environment, Infrastructure

QUEUES = tuple(queue for service in SERVICES for queue in queues_of(service))


class RecycledVhost:
    """Queues that a test makes by itself have to be exclusive."""

    def __init__(self, infrastructure: Infrastructure) -> None:
        self._infrastructure = infrastructure
        self._environment: Environment | None = None

    def url(self) -> str:
        """It is made when this is asked for first."""
        if self._environment is None:
            self._environment = self._infrastructure.create()
        return self._environment.amqp_url

    async def empty(self) -> None:
        """As the definitions left it, for the next test. No process of this one may declare a queue any more."""
        url, environment = self.url(), self._environment
        self._environment = None  # where it cannot be emptied, the next test has another one
        connection = await aio_pika.connect(url)
        async with connection, connection.channel() as channel:
            for queue in QUEUES:
                await channel.queue_delete(queue)
            for service in EVENT_CONSUMERS:
                await declare_events(channel, service)
        self._environment = environment
