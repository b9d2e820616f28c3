"""Onboarding and the bank as processes, shared by this worker's tests of onboarding."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio

from services.onboarding.repository.steps import SagaName
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import ONBOARDING_AND_BANK, Desk, open_desk, partner
from tests.integration.onboarding.handling import Handling, open_handling
from tests.integration.onboarding.shelf import add_approved, new_store, open_shelf
from tests.integration.onboarding.steps import OPERATION, Steps
from tests.support.database_life import distrust_life, trust_life
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.stack import Stack, running_stack


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def onboarding(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """On an environment of its own, so that nobody else consumes its queues."""
    environment = infrastructure.create()
    folder = tmp_path_factory.mktemp("onboarding")
    async with running_stack(environment, folder, ONBOARDING_AND_BANK) as stack:
        yield stack
    infrastructure.drop(environment)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def opened_desk(onboarding: Stack) -> AsyncIterator[Desk]:
    async with open_desk(onboarding) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def desk(opened_desk: Desk) -> AsyncIterator[Desk]:
    """A test that ends the service or the bank finds them running again afterwards.

    Its tests run in the event loop of the connections, which is the session's.
    """
    async with aiohttp.ClientSession() as http:
        opened_desk.events.clear()
        desk = replace(opened_desk, http=http)
        yield desk
        await desk.no_faults()
    for service in desk.stack.services.values():
        if not service.is_running:
            await service.start()


@pytest_asyncio.fixture
async def distrusted(environment: Environment) -> AsyncIterator[Steps]:
    """On a database whose present life was not checked."""
    async with open_shelf(environment) as database:
        await distrust_life(database, lost_seconds=300, began_seconds=60)
        async with database.transaction() as connection:
            customer = (await add_approved(connection, new_store(), "demo")).customer
        leased = await driving.accept(database, OPERATION, partner())
        name = SagaName(
            saga_id=uuid4(), tenant="demo", customer_id=customer.customer_id, operation=OPERATION
        )
        yield Steps(database, name, leased)
        await trust_life(database)


@pytest_asyncio.fixture
async def steps(distrusted: Steps) -> Steps:
    await trust_life(distrusted.database)
    return distrusted


@pytest_asyncio.fixture
async def handling(environment: Environment) -> AsyncIterator[Handling]:
    async with open_handling(environment) as opened:
        yield opened
