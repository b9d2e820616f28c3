"""A provider whose pages and failures the tests decide, and a mirror of it on its tables."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from libs.persistence.engine import Database, open_database
from tests.integration.mirror.mirrors import PAGE_SIZE, Mirror, open_mirror
from tests.support.infrastructure import Environment
from tests.support.posting_source import ScriptedSource


@pytest_asyncio.fixture
async def database(environment: Environment) -> AsyncIterator[Database]:
    opened = open_database(environment.database_urls["ledger_read"], "tests")
    yield opened
    await opened.close()


@pytest.fixture
def account_id() -> str:
    return f"acc_{uuid.uuid4().hex}"


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource(PAGE_SIZE)


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture
async def mirror(opened: AsyncExitStack, source: ScriptedSource, database: Database) -> Mirror:
    return await open_mirror(opened, source, database)
