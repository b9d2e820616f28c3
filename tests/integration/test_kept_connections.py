"""asyncpg's connections that go from user to user: nobody waits for one that is kept, and none is used for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import event, text
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


async def test_at_most_half_of_the_pool_is_kept(database: Database) -> None:
    await use_at_once(database, POOL_SIZE)

    assert out_of_the_pool(database) == KEPT


@pytest.mark.parametrize("askers", [1, KEPT])
async def test_what_is_kept_is_given_back_to_whoever_asks_the_pool(
    database: Database, askers: int
) -> None:
    all_have_one = asyncio.Barrier(askers)

    async def ask() -> None:
        async with database.transaction() as connection:
            await all_have_one.wait()
            await connection.execute(text("SELECT 1"))

    async with AsyncExitStack() as held:
        for _ in range(POOL_SIZE - KEPT):  # as leaderships are, for ever
            await held.enter_async_context(database.autocommit())
        await use_at_once(database, KEPT)
        assert out_of_the_pool(database) == POOL_SIZE

        async with asyncio.timeout(CONNECT_SECONDS / 2):
            await asyncio.gather(*(ask() for _ in range(askers)))


@pytest.mark.parametrize("wait", [Database.ping, partial(use_at_once, users=1)])
async def test_whoever_waits_for_the_pool_gets_what_is_released(
    database: Database, wait: Callable[[Database], Coroutine[Any, Any, object]]
) -> None:
    one_may_end, all_may_end = asyncio.Event(), asyncio.Event()
    all_are_out = asyncio.Barrier(POOL_SIZE + 1)

    async def hold(until: asyncio.Event) -> None:
        async with database.driver():
            await all_are_out.wait()
            await until.wait()

    ends = [one_may_end, *[all_may_end] * (POOL_SIZE - 1)]
    holding = [asyncio.create_task(hold(end)) for end in ends]
    await all_are_out.wait()
    waiting = asyncio.create_task(wait(database))
    await asyncio.sleep(0.1)  # it asks the pool, which has none
    assert not waiting.done()

    one_may_end.set()

    async with asyncio.timeout(CONNECT_SECONDS / 2):
        await waiting
    all_may_end.set()
    await asyncio.gather(*holding)


async def test_the_pool_is_asked_after_a_while(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends connections that are old."""
    given = 0

    def count(*_: object) -> None:
        nonlocal given
        given += 1

    event.listen(database.engine.sync_engine, "checkout", count)
    monkeypatch.setattr(engine, "KEPT_SECONDS", 0.2)
    await use_at_once(database, 1)
    await use_at_once(database, 1)
    before = given
    await asyncio.sleep(0.2)  # until its time is over

    await use_at_once(database, 1)

    assert (before, given) == (1, 2)


async def test_none_outlives_its_database(database: Database, environment: Environment) -> None:
    onlooker = open_database(environment.database_urls["onboarding"], "test")
    pids = await use_at_once(database, KEPT)

    async def all_have_ended() -> bool:
        async with onlooker.driver() as connection:
            return not await connection.fetch(
                "SELECT 1 FROM pg_stat_activity WHERE pid = ANY($1)", list(pids)
            )

    try:
        async with database.driver() as late:
            pids.add(late.get_server_pid())
            await database.close()

        await eventually("the server has ended them", all_have_ended)
    finally:
        await onlooker.close()
