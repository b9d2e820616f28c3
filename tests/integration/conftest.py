"""Parts of services that run inside a test log one plain line an event, without the local variables of every frame."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

from libs.persistence.engine import Database, open_database
from tests.integration.recycled_vhost import RecycledVhost
from tests.integration.recycling import RecycledDatabase
from tests.support.compiling import compiled_once
from tests.support.infrastructure import Environment, Infrastructure


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> Iterator[None]:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.KeyValueRenderer(
                key_order=["level", "event"], repr_native_str=False
            ),
        ],
        cache_logger_on_first_use=False,
    )
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session", autouse=True)
def statements_compiled_once() -> Iterator[None]:
    with compiled_once():
        yield


@pytest.fixture(scope="session")
def recycled(infrastructure: Infrastructure) -> Iterator[RecycledDatabase]:
    database = RecycledDatabase(infrastructure.create())
    yield database
    database.close()


@pytest.fixture(scope="session")
def recycled_vhost(infrastructure: Infrastructure) -> Iterator[RecycledVhost]:
    vhost = RecycledVhost(infrastructure)
    yield vhost
    vhost.close()


@pytest_asyncio.fixture
async def fresh_environment(
    recycled: RecycledDatabase, recycled_vhost: RecycledVhost
) -> AsyncIterator[Environment]:
    """A database and a virtual host as they are made, for one test, which may leave each alone."""
    shared = recycled.environment
    environment = Environment(
        shared.database,
        recycled.urls,
        recycled_vhost.url,
        shared.secrets,
        lambda: shared.cluster,
    )
    yield environment
    try:
        if "amqp_url" in vars(environment):
            await recycled_vhost.empty()
    finally:
        if "database_urls" in vars(environment):
            await recycled.empty()


@pytest_asyncio.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    """Onboarding's, of an environment that nobody else uses."""
    opened = open_database(fresh_environment.database_urls["onboarding"], "tests")
    yield opened
    await opened.close()
