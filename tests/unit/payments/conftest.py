"""The bench, on a database that no process of the product works on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import msgspec
import pytest
import pytest_asyncio

from tests.support.compiling import compiled_once
from tests.support.database_life import trust_life
from tests.support.infrastructure import Environment, Infrastructure
from tests.unit.payments.bench import MINE, Bench, open_bench


@pytest.fixture(scope="session", autouse=True)
def statements_compiled_once() -> Iterator[None]:
    with compiled_once():
        yield


@pytest.fixture(scope="session")
def quiet_environment(infrastructure: Infrastructure) -> Iterator[Environment]:
    """Shared by this worker's tests of handlers (0.5 s)."""
    environment = infrastructure.create()
    yield environment
    infrastructure.drop(environment)


@pytest_asyncio.fixture
async def bench(quiet_environment: Environment) -> AsyncIterator[Bench]:
    async with open_bench(quiet_environment) as opened:
        await trust_life(opened.database)
        yield opened


@pytest.fixture
def a_customer_of_its_own(bench: Bench) -> None:
    """Policies and what is used of them are a customer's."""
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid4()))
