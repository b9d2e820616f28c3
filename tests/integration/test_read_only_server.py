"""A failover: for a while the address leads to a standby, or a server turns into one. No such connection is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import text
from sqlalchemy.engine import make_url

from libs.persistence.availability import is_away
from libs.persistence.engine import Database, open_database
from tests.integration.tables import define
from tests.support.infrastructure import Environment

WRITE = "INSERT INTO note VALUES ('written')"
TURN_READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"


async def write_by_sqlalchemy(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text(WRITE))


async def write_by_driver(database: Database) -> None:
    async with database.driver() as connection:
        await connection.execute(WRITE)


Use = Callable[[Database], Awaitable[None]]
USES: list[Use] = [write_by_sqlalchemy, write_by_driver, Database.ping]


@pytest_asyncio.fixture
async def database(environment: Environment) -> AsyncIterator[Database]:
    await define(environment, "onboarding", "CREATE TABLE note (text text)")
    opened = open_database(environment.database_urls["onboarding"], "test", pool_size=2)
    yield opened
    await opened.close()
    await define(environment, "onboarding", "DROP TABLE note")


async def let_sessions_write(environment: Environment, *, may: bool) -> None:
    """Of sessions of onboarding that begin from now on."""
    login = make_url(environment.database_urls["onboarding"]).username
    value = "RESET default_transaction_read_only"
    if not may:
        value = "SET default_transaction_read_only = on"
    connection = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await connection.execute(
            f'ALTER ROLE "{login}" IN DATABASE "{environment.database}" {value}'
        )
    finally:
        await connection.close()


async def assert_away(used: Awaitable[None]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of any kind that means so
        await used
    assert is_away(caught.value)


@pytest.mark.parametrize("use", USES)
async def test_a_server_that_cannot_be_written_to_is_not_connected_to(
    environment: Environment, database: Database, use: Use
) -> None:
    await let_sessions_write(environment, may=False)
    try:
        await asyncio.gather(*(assert_away(use(database)) for _ in range(2)))
    finally:
        await let_sessions_write(environment, may=True)

    await use(database)


@pytest.mark.parametrize("use", USES)
async def test_a_connection_whose_server_became_a_standby_is_closed(
    database: Database, use: Use
) -> None:
    async with database.autocommit() as connection:
        await connection.execute(text(TURN_READ_ONLY))
    async with database.driver() as driver:
        await driver.execute(TURN_READ_ONLY)

    await assert_away(use(database))
    if use == Database.ping:
        await assert_away(use(database))  # it asks one pool after the other

    await use(database)
