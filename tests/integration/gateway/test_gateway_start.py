"""A gateway that starts while its database is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest_asyncio

from tests.integration.gateway.desk import GATEWAY, until
from tests.support.infrastructure import Environment
from tests.support.routes import Route, route_to
from tests.support.stack import ServiceProcess, Stack


@pytest_asyncio.fixture
async def route(gateway_environment: Environment) -> AsyncIterator[Route]:
    """To the database; it passes nothing yet."""
    async with route_to(gateway_environment.database_urls["gateway"]) as opened:
        opened.refuse()
        yield opened


@pytest_asyncio.fixture
async def waiting(
    gateway_environment: Environment, route: Route, tmp_path: Path
) -> AsyncIterator[ServiceProcess]:
    """A gateway that has found its database away."""
    urls = {**gateway_environment.database_urls, "gateway": route.url}
    stack = Stack(gateway_environment.with_urls(database_urls=urls), tmp_path, GATEWAY)
    gateway = stack.services["gateway"]
    gateway.spawn()
    try:
        await until(partial(has_found_it_away, gateway))
        yield gateway
    finally:
        await stack.stop()


async def has_found_it_away(gateway: ServiceProcess) -> bool:
    return "database_away" in gateway.log


async def test_it_is_ready_once_the_database_is_back(route: Route, waiting: ServiceProcess) -> None:
    route.accept()

    await waiting.ready()

    assert "Traceback" not in waiting.log


async def test_it_ends_at_once_when_it_is_told_to(waiting: ServiceProcess) -> None:
    code = await waiting.stop()

    assert code == 0
    assert "shutdown_too_slow" not in waiting.log
    assert "Traceback" not in waiting.log
