"""One migrated server for these tests, which only look at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from deploy.local.services import Secrets
from tests.support.own_servers import OwnPostgres, newly_migrated_postgres


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def secrets() -> Secrets:
    return Secrets.generate()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres(secrets: Secrets) -> AsyncIterator[OwnPostgres]:
    async with newly_migrated_postgres(secrets) as server:
        yield server
