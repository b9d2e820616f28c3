"""One gateway of two processes for all of a worker's gateway tests; each test has a desk and keys of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
import pytest_asyncio

from tests.integration.gateway.desk import Desk, desk_at, gateway_process
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.pace import waiting_pace
from tests.support.stack import Stack

DEADLINE_SECONDS = 7.0
"""Services answer 3 s earlier."""
BODY_SECONDS = 1.5


@pytest.fixture(scope="package")
def gateway_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    """Where no service runs but the gateway and what a test puts there."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def gateway(
    gateway_environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    async with gateway_process(
        gateway_environment,
        tmp_path_factory.mktemp("gateway"),
        BANKSIDE_GATEWAY_PROCESSES="2",
        BANKSIDE_GATEWAY_DEADLINE_SECONDS=str(DEADLINE_SECONDS * waiting_pace()),
        BANKSIDE_GATEWAY_BODY_SECONDS=str(BODY_SECONDS * waiting_pace()),
        # Connections that are kept have to carry a request within it, or are closed as one is sent.
        BANKSIDE_GATEWAY_DRAIN_SECONDS=str(waiting_pace()),
        BANKSIDE_GATEWAY_FAILURES_PER_MINUTE="1000000",
        BANKSIDE_GATEWAY_LOG_LEVEL="DEBUG",
    ) as stack:
        yield stack


@pytest_asyncio.fixture
async def desk(gateway: Stack) -> AsyncIterator[Desk]:
    async with desk_at(gateway) as opened:
        yield opened


@pytest_asyncio.fixture
async def nothing_left(gateway_environment: Environment) -> AsyncIterator[None]:
    """What a test leaves unfinished is not driven by the next one's service."""
    yield
    connection = await asyncpg.connect(gateway_environment.database_urls["onboarding"])
    await connection.execute("DELETE FROM inbox WHERE finished_at IS NULL")
    await connection.close()
