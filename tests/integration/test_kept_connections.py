"""asyncpg's connections that go from user to user: nobody waits for one that is kept, and none is kept for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import text
from sqlalchemy.pool import QueuePool

from libs.persistence import engine
from libs.persistence.engine import CONNECT_SECONDS, Database, open_database
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually

POOL_SIZE = 4
KEPT = 2


@pytest_asyncio.fixture
async def database(environment: Environment) -> AsyncIterator[Database]:
    opened = open_database(
        environment.database_urls["onboarding"], "kept-test", pool_size=POOL_SIZE
    )
    yield opened
    await opened.close()


def out_of_the_pool(database: Database) -> int:
    pool = database.engine.pool
    assert isinstance(pool, QueuePool)
    return pool.checkedout()


async def use_at_once(database: Database, users: int) -> set[int]:
    """The servers' processes that they had."""
    all_have_one = asyncio.Barrier(users)

    async def use() -> int:
        async with database.driver() as connection:
            await all_have_one.wait()
            return int(connection.get_server_pid())

    return set(await asyncio.gather(*(use() for _ in range(users))))


async def test_the_next_user_has_the_same_connection(database: Database) -> None:
    first = await use_at_once(database, 1)
    second = await use_at_once(database, 1)

    assert first == second
    assert out_of_the_pool(database) == 1


async def test_half_of_the_pool_remains_for_transactions(database: Database) -> None:
    await use_at_once(database, POOL_SIZE)
    assert out_of_the_pool(database) == KEPT

    async with asyncio.timeout(CONNECT_SECONDS / 2):
        async with database.transaction() as one, database.transaction() as other:
            assert await one.scalar(text("SELECT 1")) == await other.scalar(text("SELECT 1"))


async def test_whoever_waits_for_the_pool_gets_what_is_released(database: Database) -> None:
    one_may_end, all_may_end = asyncio.Event(), asyncio.Event()
    all_are_out = asyncio.Barrier(POOL_SIZE + 1)

    async def hold(until: asyncio.Event) -> None:
        async with database.driver():
            await all_are_out.wait()
            await until.wait()

    ends = [one_may_end, *[all_may_end] * (POOL_SIZE - 1)]
    holding = [asyncio.create_task(hold(end)) for end in ends]
    await all_are_out.wait()
    waiting = asyncio.create_task(use_at_once(database, 1))
    await asyncio.sleep(0.1)  # it asks the pool, which has none
    assert not waiting.done()

    one_may_end.set()

    async with asyncio.timeout(CONNECT_SECONDS / 2):
        await waiting
    all_may_end.set()
    await asyncio.gather(*holding)


async def test_one_that_was_kept_long_goes_back_to_the_pool(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "KEPT_SECONDS", 0.2)
    await use_at_once(database, 1)
    assert out_of_the_pool(database) == 1
    await asyncio.sleep(0.2)  # until its time is over

    await use_at_once(database, 1)

    assert out_of_the_pool(database) == 0


async def test_none_outlives_its_database(database: Database, environment: Environment) -> None:
    pids = await use_at_once(database, KEPT)
    onlooker = open_database(environment.database_urls["onboarding"], "test")

    async def all_have_ended() -> bool:
        async with onlooker.driver() as connection:
            return not await connection.fetch(
                "SELECT 1 FROM pg_stat_activity WHERE pid = ANY($1)", list(pids)
            )

    try:
        await database.close()

        await eventually("the server has ended them", all_have_ended)
    finally:
        await onlooker.close()
