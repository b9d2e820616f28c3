"""These tests share one stack with the console per worker, and one Chromium."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from deploy.console.chromium import chromium
from deploy.local.banks import SANDBOX
from deploy.local.chromium import PACKAGE, find_chromium
from deploy.local.services import SERVICES
from libs.contracts.principal import Role
from tests.e2e.console.hands import Desk, Seat, seats_are_fine
from tests.support.infrastructure import Environment
from tests.support.launching import begin_loading
from tests.support.live import Deployment, Live, hands_on, own_environment, short_waits
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import running_stack

__all__ = ["own_environment"]


@pytest.fixture(scope="package")
def program() -> str:
    found = find_chromium()
    if found is None:
        pytest.skip(f"there is no Chromium: `apt-get install {PACKAGE}`")
    return found


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def deployment(program: str, own_environment: Environment) -> AsyncIterator[Deployment]:
    """With the console, at the sandbox: what is shown is the same at each bank. Not without a browser for it."""
    assert program
    begin_loading()
    events = RecordedEvents(own_environment.amqp_url)
    await events.begin()
    with tempfile.TemporaryDirectory(prefix="bankside-test-") as folder:
        async with running_stack(
            own_environment, Path(folder), SERVICES, bank=SANDBOX, **short_waits()
        ) as stack:
            yield Deployment(stack, events)


@pytest_asyncio.fixture(loop_scope="session")
async def live(deployment: Deployment) -> AsyncIterator[Live]:
    """In the event loop of the browser."""
    async with hands_on(deployment) as hands:
        yield hands
        await hands.bank.heal()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser(program: str) -> AsyncIterator[Browser]:
    async with chromium(program) as opened:
        yield opened


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def desk(deployment: Deployment, browser: Browser) -> AsyncIterator[Desk]:
    opened = Desk(deployment.stack, browser)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def admin(desk: Desk) -> AsyncIterator[Seat]:
    """An operator of the role who has logged in once for all tests, at an empty page."""
    async with seats_are_fine(await desk.seat(Role.ADMIN)) as seat:
        yield seat


@pytest_asyncio.fixture(loop_scope="session")
async def viewer(desk: Desk) -> AsyncIterator[Seat]:
    async with seats_are_fine(await desk.seat(Role.VIEWER)) as seat:
        yield seat
