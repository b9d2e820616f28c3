"""webhook_dispatcher as a process, shared by this worker's tests of its interface."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from deploy.local.services import SERVICES
from tests.integration.webhooks.api.desk import (
    Connections,
    Desk,
    make_partitions,
    open_connections,
)
from tests.support.infrastructure import Infrastructure
from tests.support.stack import Stack

NAMES = ("webhook_dispatcher", "gateway")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def office(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """On an environment of its own, so that nobody else consumes its queues."""
    environment = infrastructure.create()
    services = tuple(service for service in SERVICES if service.name in NAMES)
    stack = Stack(
        environment,
        tmp_path_factory.mktemp("webhooks"),
        services,
        BANKSIDE_RETRY_SECONDS="7200,7200,7200",
    )
    await make_partitions(environment)
    await stack.services["webhook_dispatcher"].start()
    yield stack
    await stack.stop()
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def connections(office: Stack) -> AsyncIterator[Connections]:
    async with open_connections(office) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def desk(office: Stack, connections: Connections) -> Desk:
    """The dispatcher, running, and subscribers that no other test has.

    Its tests run in the event loop of the connections, which is the session's.
    """
    if not office.services["webhook_dispatcher"].is_running:
        await office.services["webhook_dispatcher"].start()
    return Desk(office, connections.service_client, connections.database, connections.recorder)
