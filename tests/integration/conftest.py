"""Parts of services that run inside a test log one plain line an event, without the local variables of every frame."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

from libs.persistence.engine import Database, open_database
from tests.integration.compiling import compiled_once
from tests.integration.recycling import RecycledDatabase
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


@pytest_asyncio.fixture
async def fresh_environment(
    infrastructure: Infrastructure, recycled: RecycledDatabase
) -> AsyncIterator[Environment]:
    """A database as migrations leave it, and a virtual host, for one test; each is made when the test asks for it."""
    database, with_vhost = recycled.environment, infrastructure.create()
    environment = Environment(
        database.database,
        recycled.urls,
        lambda: with_vhost.amqp_url,
        database.secrets,
        lambda: with_vhost.cluster,
    )
    yield environment
    if "database_urls" in vars(environment):
        await recycled.empty()


@pytest_asyncio.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    """Onboarding's, of an environment that nobody else uses."""
    opened = open_database(fresh_environment.database_urls["onboarding"], "tests")
    yield opened
    await opened.close()
