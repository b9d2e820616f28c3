"""A whole stack of its own, in which books are made to differ; and a database without any process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from libs.persistence.engine import Database, open_database
from tests.e2e.wires.hands import Sender, new_sender
from tests.integration.reconciliation.books import Books, open_books
from tests.integration.tables import execute
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.live import Deployment, Live, live, own_environment
from tests.support.reconciling import assert_reconciled
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack

__all__ = ["live", "own_environment"]

TABLES = (
    "suspect",
    "difference",
    "run",
    "posted",
    "wire_debit",
    "return_posting",
    "feed_watch",
    "feed_cursor",
)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def deployment(
    own_environment: Environment,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Deployment]:
    """One stack for all of these tests. Its callers wait as long as they do in production."""
    events = RecordedEvents(own_environment.amqp_url)
    await events.begin()
    async with running_stack(own_environment, tmp_path_factory.mktemp("stack")) as stack:
        yield Deployment(stack, events)


@pytest_asyncio.fixture
async def books(live: Live) -> AsyncIterator[Books]:
    """Books that agree, as every test leaves them."""
    async with open_books(live) as opened:
        yield opened
    await assert_reconciled(live.stack)


@pytest_asyncio.fixture
async def sender(live: Live) -> Sender:
    """A customer with money in the account."""
    return await new_sender(live, "1000.00")


@pytest.fixture(scope="package")
def no_services(infrastructure: Infrastructure) -> Iterator[Environment]:
    """An environment on which no process carries out runs."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def opened_database(no_services: Environment) -> AsyncIterator[Database]:
    """Its connections know the statements of all of these tests, which new ones would prepare anew."""
    opened = open_database(no_services.database_urls["reconciliation"], "tests")
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def database(opened_database: Database) -> AsyncIterator[Database]:
    """Empty. Its tests run in the event loop of the connections, which is the session's."""
    yield opened_database
    await execute(opened_database, *(f"DELETE FROM {table}" for table in TABLES))
