"""Parts of services that run inside a test log one plain line an event, without the local variables of every frame."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

from libs.persistence.engine import Database, open_database
from tests.support.infrastructure import Environment


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


@pytest_asyncio.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    """Onboarding's, of an environment that nobody else uses."""
    opened = open_database(fresh_environment.database_urls["onboarding"], "tests")
    yield opened
    await opened.close()
