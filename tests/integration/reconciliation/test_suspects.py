"""Suspects in the order in which they are due, over a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from services.reconciliation.repository import suspects
from services.reconciliation.repository.suspects import Suspects
from tests.integration.tables import execute
from tests.support.infrastructure import Environment

pytestmark = pytest.mark.asyncio(loop_scope="session")

FETCHED = text("SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'suspect'")
BY_INDEXES = [
    text(f"SET LOCAL enable_{worse} = off") for worse in ("seqscan", "bitmapscan", "sort")
]


@pytest_asyncio.fixture(loop_scope="session")
async def database(no_services: Environment, database: Database) -> AsyncIterator[Database]:
    """Its connections have no plans from the tests before."""
    opened = open_database(no_services.database_urls["reconciliation"], "tests")
    yield opened
    await opened.close()


async def find_due(connection: AsyncConnection, *comparisons: str) -> Suspects | None:
    return await suspects.find_due(connection, uuid4(), 25, comparisons, longest_seconds=60)


async def test_the_comparison_whose_suspect_has_been_due_longest_comes_first(
    database: Database,
) -> None:
    async with database.transaction() as connection:
        for comparison, key in (("wires", "w1"), ("accounts", "a1"), ("wires", "w2")):
            await suspects.add(connection, comparison, [key])

        first = await find_due(connection, "accounts", "wires")
        await suspects.remove(connection, "wires", ["w1"])
        second = await find_due(connection, "accounts", "wires")
        none = await find_due(connection, "customers")

    assert first is not None
    assert (first.comparison, [due.key for due in first.due]) == ("wires", ["w1", "w2"])
    assert second is not None
    assert (second.comparison, [due.key for due in second.due]) == ("accounts", ["a1"])
    assert none is None


async def test_the_suspects_of_a_comparison_that_pauses_are_not_read(database: Database) -> None:
    await execute(
        database,
        "INSERT INTO suspect (comparison, key) SELECT 'wires', n::text FROM generate_series(1, 300) n",
    )
    async with database.transaction() as connection:
        await suspects.add(connection, "accounts", ["a1"])

    async with database.transaction() as connection:
        for setting in BY_INDEXES:
            await connection.execute(setting)
        found = await find_due(connection, "accounts")
        fetched = (await connection.execute(FETCHED)).scalar_one()

    assert found is not None
    assert [due.key for due in found.due] == ["a1"]
    assert fetched <= 2


async def test_a_suspect_from_before_the_clock_was_set_back_is_due(database: Database) -> None:
    async with database.transaction() as connection:
        await suspects.add(connection, "wires", ["w1", "w2"])
    await execute(
        database,
        "UPDATE suspect SET due_at = due_at + interval '1 day' WHERE key = 'w1'",
        "UPDATE suspect SET due_at = due_at + interval '50 s' WHERE key = 'w2'",
    )

    async with database.transaction() as connection:
        found = await find_due(connection, "wires")

    assert found is not None
    assert [due.key for due in found.due] == ["w1"]
