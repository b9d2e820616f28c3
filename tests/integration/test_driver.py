"""The pool of asyncpg's own connections: what is committed, what costs the connection, and who gets one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from libs.persistence.availability import is_away
from libs.persistence.engine import CONNECT_SECONDS, Database, open_database
from tests.integration.tables import define
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

Opened = Callable[[Database], AbstractAsyncContextManager[asyncpg.Connection]]
WAYS: list[Opened] = [Database.driver, Database.driver_transaction]


POOL_SIZE = 4


@pytest_asyncio.fixture(params=[1, POOL_SIZE], ids=["a pool of one", "a larger pool"])
async def database(
    environment: Environment, request: pytest.FixtureRequest
) -> AsyncIterator[Database]:
    opened = open_database(environment.database_urls["onboarding"], "test", pool_size=request.param)
    await define(environment, "onboarding", "CREATE TABLE note (text text)")
    yield opened
    await opened.close()
    await define(environment, "onboarding", "DROP TABLE note")


async def pid_and_notes(database: Database) -> tuple[int, list[str]]:
    async with database.driver() as connection:
        rows = await connection.fetch("SELECT text FROM note ORDER BY text")
        return connection.get_server_pid(), [row["text"] for row in rows]


@pytest.mark.parametrize("error", [ValueError("of the body"), asyncpg.DataError("wrong")])
@pytest.mark.parametrize("way", WAYS)
async def test_a_wrong_statement_does_not_cost_the_connection(
    database: Database, way: Opened, error: Exception
) -> None:
    pid, _ = await pid_and_notes(database)

    with pytest.raises(type(error)):
        async with way(database):
            raise error

    assert await pid_and_notes(database) == (pid, [])


@pytest.mark.parametrize("error", [OSError("gone"), asyncio.CancelledError(), KeyError("ours")])
@pytest.mark.parametrize("way", WAYS)
async def test_any_error_but_a_wrong_statement_costs_the_connection(
    database: Database, way: Opened, error: BaseException
) -> None:
    pid, _ = await pid_and_notes(database)

    with pytest.raises(type(error)):
        async with way(database):
            raise error

    other, _ = await pid_and_notes(database)
    assert other != pid


async def test_a_transaction_is_committed_at_its_end(
    database: Database, environment: Environment
) -> None:
    onlooker = open_database(environment.database_urls["onboarding"], "test")
    try:
        async with database.driver_transaction(
            "BEGIN; INSERT INTO note VALUES ('opening')"
        ) as connection:
            await connection.execute("INSERT INTO note VALUES ($1)", "body")
            _, before = await pid_and_notes(onlooker)
        _, after = await pid_and_notes(onlooker)
    finally:
        await onlooker.close()

    assert (before, after) == ([], ["body", "opening"])


@pytest.mark.parametrize(
    "error",
    [ValueError("of the body"), asyncpg.DataError("wrong"), OSError("gone"), KeyError("ours")],
)
async def test_a_transaction_that_fails_leaves_nothing(
    database: Database, error: Exception
) -> None:
    with pytest.raises(type(error)):
        async with database.driver_transaction(
            "BEGIN; INSERT INTO note VALUES ('opening')"
        ) as connection:
            await connection.execute("INSERT INTO note VALUES ('body')")
            raise error

    _, notes = await pid_and_notes(database)
    assert notes == []


async def test_a_transaction_whose_opening_is_wrong_leaves_nothing(database: Database) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.driver_transaction("BEGIN; INSERT INTO nothing VALUES (1)"):
            pytest.fail("the body is not run")

    _, notes = await pid_and_notes(database)
    assert notes == []


async def test_a_connection_that_is_ended_by_the_server_means_that_it_is_away(
    database: Database,
) -> None:
    with pytest.raises((asyncpg.AdminShutdownError, asyncpg.PostgresConnectionError)) as caught:
        async with database.driver_transaction() as connection:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    assert is_away(caught.value)
    assert await pid_and_notes(database) is not None


@pytest.mark.parametrize("way", WAYS)
async def test_a_connection_that_was_ended_meanwhile_is_not_handed_out(
    database: Database, environment: Environment, way: Opened
) -> None:
    async with database.driver() as ended:
        pid = ended.get_server_pid()
    onlooker = open_database(environment.database_urls["onboarding"], "test")
    try:
        async with onlooker.driver() as connection:
            await connection.execute("SELECT pg_terminate_backend($1)", pid)
    finally:
        await onlooker.close()

    async def is_closed() -> bool:
        return bool(ended.is_closed())

    await eventually("the end has come to this process", is_closed)

    async with way(database) as connection:
        assert await connection.fetchval("SELECT 1") == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_statement_that_is_given_up_does_not_go_on(database: Database, way: Opened) -> None:
    async def write_slowly() -> None:
        async with way(database) as connection:
            await connection.execute("INSERT INTO note SELECT 'late' FROM pg_sleep(10)")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await write_slowly()
    await eventually("the server is done with it", partial(nobody_writes, database))

    _, notes = await pid_and_notes(database)
    assert notes == []


async def nobody_writes(database: Database) -> bool:
    async with database.driver() as connection:
        return not await connection.fetch(
            "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO note%' AND state = 'active'"
            " AND datname = current_database()"
        )


async def test_whoever_is_cancelled_while_giving_up_keeps_no_connection(database: Database) -> None:
    async def sleep() -> None:
        async with database.driver() as connection:
            await connection.execute("SELECT pg_sleep(20)")

    for moments in range(6):
        sleeping = asyncio.create_task(sleep())
        await asyncio.sleep(0.1)  # it has a connection, in one variant the only one
        sleeping.cancel()
        for _ in range(moments):
            await asyncio.sleep(0)
        sleeping.cancel()
        await asyncio.gather(sleeping, return_exceptions=True)

        assert await pid_and_notes(database) is not None


@pytest.mark.parametrize("way", [Database.driver, Database.transaction])
async def test_a_login_that_is_refused_means_that_the_database_is_away(
    environment: Environment, way: Callable[[Database], AbstractAsyncContextManager[object]]
) -> None:
    url = make_url(environment.database_urls["onboarding"]).set(password="another")
    closed_door = open_database(url.render_as_string(hide_password=False), "test")
    try:
        with pytest.raises((asyncpg.PostgresError, DBAPIError)) as caught:
            async with way(closed_door):
                pytest.fail("the body is not run")
    finally:
        await closed_door.close()

    assert is_away(caught.value)


async def use_at_once(database: Database, users: int) -> set[int]:
    """The server processes of the connections that they had."""
    all_have_one = asyncio.Barrier(users)

    async def use() -> int:
        async with database.driver() as connection:
            await all_have_one.wait()
            return int(connection.get_server_pid())

    return set(await asyncio.gather(*(use() for _ in range(users))))


@pytest.mark.parametrize("database", [POOL_SIZE], indirect=True)
async def test_the_connection_used_last_is_used_next(database: Database) -> None:
    all_of_them = await use_at_once(database, POOL_SIZE)
    first = await use_at_once(database, 1)
    second = await use_at_once(database, 1)

    assert len(all_of_them) == POOL_SIZE
    assert first == second


@pytest.mark.parametrize("database", [1], indirect=True)
async def test_a_caller_waits_for_a_full_pool_and_gets_what_is_released(database: Database) -> None:
    async with database.driver():
        waiting = asyncio.create_task(use_at_once(database, 1))
        await asyncio.sleep(0.1)  # it asks the pool, which has none
        assert not waiting.done()

    async with asyncio.timeout(pace() * CONNECT_SECONDS / 2):
        await waiting


@pytest.mark.parametrize("database", [1], indirect=True)
async def test_a_pool_that_is_full_for_too_long_means_that_the_database_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.driver():
        monkeypatch.setattr(database._drivers, "_connect_seconds", 0.1)
        with pytest.raises(TimeoutError) as caught:
            await use_at_once(database, 1)

    assert is_away(caught.value)


@pytest.mark.parametrize("database", [1], indirect=True)
async def test_a_database_without_a_free_driver_connection_is_not_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.ping()

    async with database.driver():
        monkeypatch.setattr(database._drivers, "_connect_seconds", 0.1)
        with pytest.raises(TimeoutError):
            await database.ping()


async def test_arguments_of_the_connection_in_the_url_apply_to_both_pools(
    environment: Environment,
) -> None:
    url = f"{environment.database_urls['onboarding']}?ssl=require"
    without_tls_on_the_server = open_database(url, "test")
    try:
        for way in (Database.driver, Database.transaction):
            with pytest.raises(ConnectionError, match="SSL"):
                async with way(without_tls_on_the_server):
                    pytest.fail("the body is not run")
    finally:
        await without_tls_on_the_server.close()


@pytest.mark.parametrize("database", [1], indirect=True)
async def test_the_two_pools_do_not_wait_for_each_other(database: Database) -> None:
    async with database.driver() as connection, database.transaction() as transaction:
        assert await connection.fetchval("SELECT 1") == 1
        assert (await transaction.execute(select(1))).scalar_one() == 1


async def test_no_connection_outlives_its_database(environment: Environment) -> None:
    onlooker = open_database(environment.database_urls["onboarding"], "test")
    closed = open_database(environment.database_urls["onboarding"], "closed")
    pids = await use_at_once(closed, 2)

    async def all_have_ended() -> bool:
        async with onlooker.driver() as connection:
            return not await connection.fetch(
                "SELECT 1 FROM pg_stat_activity WHERE pid = ANY($1)", list(pids)
            )

    try:
        async with closed.driver():
            await closed.close()

        await eventually("the server has ended them", all_have_ended)
        with pytest.raises(asyncpg.InterfaceError):
            await use_at_once(closed, 1)
    finally:
        await onlooker.close()
