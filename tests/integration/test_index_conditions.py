"""Statements that look for rows by time read those rows alone, and not all that the index has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event

from libs.persistence import inbox, inbox_housekeeping
from libs.persistence.engine import Database, open_database
from services.ledger_read.waiting_entries import WaitingEntries
from services.onboarding.repository import steps
from services.payments import approving
from tests.support.infrastructure import Environment
from tests.support.pace import pace

Asked = tuple[str, tuple[Any, ...]]
"""A statement with its parameters."""


@asynccontextmanager
async def asked(
    environment: Environment, service: str
) -> AsyncIterator[tuple[Database, list[Asked]]]:
    """A database of the service, and what is asked by SQLAlchemy's pool of it."""
    database = open_database(environment.database_urls[service], "test")
    noted: list[Asked] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        noted.append((statement, tuple(parameters)))

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    try:
        yield database, noted
    finally:
        await database.close()


async def index_conditions(database: Database, column: str, asked: list[Asked]) -> list[str]:
    """Those with the column in the plan of the statement that compares it with the time."""
    ((statement, parameters),) = [one for one in asked if f"{column} <" in one[0]]
    async with database.driver() as connection:
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetch(f"EXPLAIN {statement}", *parameters)
    return [row[0] for row in plan if "Index Cond" in row[0] and f"({column} <" in row[0]]


async def purge_commands(database: Database) -> None:
    async with database.transaction() as connection:
        await inbox_housekeeping.purge(connection)


async def purge_steps(database: Database) -> None:
    async with database.transaction() as connection:
        await steps.purge(connection, days=36_500)


async def take_accounts(database: Database) -> None:
    await WaitingEntries(database).take(4)


@pytest.mark.parametrize(
    ("service", "ask", "column"),
    [
        ("ledger_read", take_accounts, "due_at"),
        ("payments", purge_commands, "finished_at"),
        ("onboarding", purge_steps, "recorded_at"),
        ("payments", approving.expire, "approval_expires_at"),
    ],
)
async def test_what_is_over_is_found_by_its_time(
    environment: Environment,
    service: str,
    ask: Callable[[Database], Awaitable[Any]],
    column: str,
) -> None:
    async with asked(environment, service) as (database, noted):
        await ask(database)

        assert await index_conditions(database, column, noted)


async def test_due_commands_are_found_by_their_time(environment: Environment) -> None:
    # The driver logs a statement after it was executed.
    noted: asyncio.Future[Asked] = asyncio.get_running_loop().create_future()

    def note(query: asyncpg.connection.LoggedQuery) -> None:
        noted.set_result((query.query, tuple(query.args)))

    async with asked(environment, "payments") as (database, _):
        async with database.driver() as connection:
            with connection.query_logger(note):
                await inbox.claim(connection, 0)
                statement = await asyncio.wait_for(noted, 10 * pace())

        assert await index_conditions(database, "due_at", [statement])
