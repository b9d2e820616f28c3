"""A virtual host for what one service's user can do, and what consumers do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from aio_pika.abc import AbstractConnection

from libs.contracts.table import SERVICES
from libs.messaging.topology import EVENT_CONSUMERS, declare_events
from tests.security.connections import connected
from tests.security.messages import QUEUES
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.queues import declare_service


@pytest.fixture(scope="module")
def site(infrastructure: Infrastructure) -> Iterator[Environment]:
    """A virtual host whose queues have no consumers but those of a test."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture
async def administrator(site: Environment) -> AsyncIterator[AbstractConnection]:
    """With every queue declared and empty. It may name any sender, which no administrator of a stack may."""
    async with connected(site.amqp_url) as connection:
        async with connection.channel() as channel:
            for service in SERVICES:
                await declare_service(channel, service)
            for service in EVENT_CONSUMERS:
                await declare_events(channel, service)
            for queue in QUEUES:
                await (await channel.get_queue(queue, ensure=False)).purge()
        yield connection
