"""Connections whose server vanished without FIN or RST: the first that is given up tells of all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.persistence import vanished_server
from libs.persistence.engine import Database, open_database
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.routes import Route, route_to

POOL_SIZE = 8
GIVEN_UP_SECONDS = 0.5
MARGIN_SECONDS = 2.0


async def use_driver(database: Database) -> None:
    async with database.driver() as connection:
        await connection.execute("SELECT 1")


async def use_transaction(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("SELECT 1"))


Use = Callable[[Database], Awaitable[None]]
USES: list[Use] = [use_driver, use_transaction]


@pytest_asyncio.fixture
async def route(environment: Environment) -> AsyncIterator[Route]:
    async with route_to(environment.database_urls["onboarding"]) as opened:
        yield opened


@pytest_asyncio.fixture
async def database(route: Route) -> AsyncIterator[Database]:
    """With as many connections as its two pools may have."""
    opened = open_database(route.url, "vanished-test", pool_size=POOL_SIZE)
    async with AsyncExitStack() as in_use:
        for _ in range(POOL_SIZE):
            await in_use.enter_async_context(opened.driver())
            await in_use.enter_async_context(opened.transaction())
    yield opened
    route.cut()
    await opened.close()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("others", USES)
async def test_after_one_was_given_up_late_the_others_are_opened_anew(
    database: Database,
    route: Route,
    monkeypatch: pytest.MonkeyPatch,
    use: Use,
    others: Use,
) -> None:
    monkeypatch.setattr(vanished_server, "DOUBT_SECONDS", GIVEN_UP_SECONDS / 2)
    route.renew()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(GIVEN_UP_SECONDS):
            await use(database)

    async with asyncio.timeout(MARGIN_SECONDS * pace()):
        await asyncio.gather(*(others(database) for _ in range(POOL_SIZE)))


async def test_what_was_given_up_early_says_nothing_of_the_others(
    database: Database, route: Route
) -> None:
    async with database.driver() as connection:
        before = await connection.fetchval("SELECT clock_timestamp()")
    route.stall()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(GIVEN_UP_SECONDS):
            await use_driver(database)
    route.resume()

    async with AsyncExitStack() as in_use:
        connections = [
            await in_use.enter_async_context(database.driver()) for _ in range(POOL_SIZE)
        ]
        opened_at = [
            await connection.fetchval(
                "SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
            )
            for connection in connections
        ]

    assert sum(at < before for at in opened_at) == POOL_SIZE - 1
