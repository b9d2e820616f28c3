from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import asyncpg
import pytest
import pytest_asyncio

from deploy.local.services import SERVICES
from tests.integration.provider_sandbox.bank import Bank
from tests.support.infrastructure import Environment
from tests.support.stack import Stack, running_stack

SANDBOX = next(service for service in SERVICES if service.name == "provider_sandbox")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def sandbox(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The sandbox alone, on this worker's database. Its wires wait until a test settles them."""
    folder = tmp_path_factory.mktemp("sandbox")
    settings = {"BANKSIDE_SANDBOX_WIRE_SECONDS": "3600"}
    async with running_stack(environment, folder, [SANDBOX], **settings) as running:
        yield running


@pytest_asyncio.fixture
async def bank(sandbox: Stack) -> AsyncIterator[Bank]:
    """The shared sandbox, without faults before and after."""
    async with aiohttp.ClientSession() as session:
        bank = Bank(session, sandbox.sandbox_url, sandbox.environment.secrets.provider_tokens)
        await bank.call("DELETE", "/faults", headers={})
        yield bank
        await bank.call("DELETE", "/faults", headers={})


@pytest_asyncio.fixture
async def books(sandbox: Stack) -> AsyncIterator[asyncpg.Connection]:
    """The bank's own database, past its door and as the owner of its tables."""
    connection = await asyncpg.connect(sandbox.environment.database_urls["provider_sandbox_owner"])
    yield connection
    await connection.close()


@pytest.fixture
def own_sandbox(fresh_environment: Environment, tmp_path: Path) -> Stack:
    """A sandbox of the test's own, not started: for tests that kill it."""
    without_broker = fresh_environment.with_urls(amqp_url="amqp://the-sandbox-uses-none")
    return Stack(without_broker, tmp_path, [SANDBOX])
