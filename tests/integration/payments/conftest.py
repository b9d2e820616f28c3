"""payments as processes, shared by this worker's tests of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.payments.desk import Connections, Desk, open_connections, open_desk
from tests.integration.payments.office import Office
from tests.support.infrastructure import Infrastructure


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def office(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Office]:
    """On an environment of its own, so that nobody else consumes its queues."""
    environment = infrastructure.create()
    office = Office(environment, tmp_path_factory.mktemp("payments"))
    yield office
    await office.stop()
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def connections(office: Office) -> AsyncIterator[Connections]:
    async with open_connections(office) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def desk(office: Office, connections: Connections) -> AsyncIterator[Desk]:
    """One replica, and a bank that is up and well. What a test leaves unfinished ends before the next.

    Its tests run in the event loop of the connections, which is the session's.
    """
    async with open_desk(connections) as opened:
        await office.run(1)
        if await opened.is_circuit_open():
            await office.replicas[0].stop()
            await office.run(1)
        yield opened
        opened.core.heal()
        await opened.database.execute("TRUNCATE inbox, outbox")
