"""One virtual host for many tests, each of which finds it as the broker's definitions left it.

A new one takes RabbitMQ 0.1 to 0.25 s of processor time, the more the more there are.
"""

from __future__ import annotations

import aio_pika

from libs.contracts.table import SERVICES
from libs.messaging.topology import EVENT_CONSUMERS, declare_events, queues_of
from tests.support.infrastructure import Environment

QUEUES = tuple(queue for service in SERVICES for queue in queues_of(service))


class RecycledVhost:
    """The virtual host of `environment`. Queues that a test makes by itself have to be exclusive."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def url(self) -> str:
        """It is made when this is asked for first."""
        return self._environment.amqp_url

    async def empty(self) -> None:
        """As the definitions left it, for the next test. No process of this one may declare a queue any more."""
        connection = await aio_pika.connect(self.url())
        async with connection, connection.channel() as channel:
            for queue in QUEUES:
                await channel.queue_delete(queue)
            for service in EVENT_CONSUMERS:
                await declare_events(channel, service)
