"""payments as processes, shared by this worker's tests of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.payments.desk import Desk, open_desk
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


@pytest_asyncio.fixture
async def desk(office: Office) -> AsyncIterator[Desk]:
    """One replica, and a bank that is up and well. What a test leaves unfinished ends before the next."""
    async with open_desk(office) as opened:
        await office.run(1)
        if await opened.is_circuit_open():
            await office.replicas[0].stop()
            await office.run(1)
        yield opened
        opened.core.heal()
        await opened.database.execute("TRUNCATE inbox, outbox")
