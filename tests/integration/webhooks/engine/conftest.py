"""The engine of the dispatcher inside the test's process, on an environment of each test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from libs.persistence.engine import open_database
from tests.integration.webhooks.engine.receiver import receiving
from tests.integration.webhooks.engine.rig import SERVICE, Rig
from tests.support.infrastructure import Environment
from tests.support.keys import storage_of


@pytest_asyncio.fixture
async def rig(fresh_environment: Environment) -> AsyncIterator[Rig]:
    database = open_database(fresh_environment.database_urls[SERVICE], SERVICE, pool_size=30)
    async with receiving() as receiver:
        yield Rig(
            database,
            fresh_environment,
            storage_of(fresh_environment.secrets, SERVICE),
            receiver,
        )
    await database.close()
