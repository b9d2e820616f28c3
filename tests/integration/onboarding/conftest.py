"""Onboarding and the bank as processes, shared by this worker's tests of onboarding."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integration.onboarding.desk import ONBOARDING_AND_BANK, Desk, open_desk
from tests.support.infrastructure import Infrastructure
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


@pytest_asyncio.fixture
async def desk(onboarding: Stack) -> AsyncIterator[Desk]:
    """A test that ends the service or the bank finds them running again afterwards."""
    async with open_desk(onboarding) as opened:
        yield opened
    for service in onboarding.services.values():
        if not service.is_running:
            await service.start()
