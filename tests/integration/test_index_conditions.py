"""Statements that look for rows by time read those rows alone, and not all that the index has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import event

from libs.persistence import inbox, inbox_acceptance, inbox_housekeeping
from libs.persistence.engine import Database, open_database
from libs.persistence.inbox_acceptance import NewCommand
from services.ledger_read.waiting_entries import WaitingEntries
from services.onboarding.repository import step_retention
from services.payments import expiring
from tests.integration.statistics import statistics_of_finished_commands, statistics_of_many_rows
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
    note_into(database, noted)
    try:
        yield database, noted
    finally:
        await database.close()


def note_into(database: Database, noted: list[Asked]) -> None:
    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        noted.append((statement, tuple(parameters)))

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)


async def index_conditions(
    environment: Environment, service: str, column: str, asked: list[Asked]
) -> list[str]:
    """Those with the column, as `table.column`, in the plan of the statement that compares it with the time."""
    table, _, column = column.partition(".")
    (statement,) = [one for one in asked if f"{column} <" in one[0]]
    async with statistics_of_many_rows(environment, service, table) as connection:
        found = await plan(connection, statement)
    return [row for row in found if "Index Cond" in row and f"({column} <" in row]


async def plan(connection: asyncpg.Connection, asked: Asked) -> list[str]:
    statement, parameters = asked
    await connection.execute("SET enable_seqscan = off")
    return [row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *parameters)]


async def purge_commands(database: Database) -> None:
    async with database.transaction() as connection:
        await inbox_housekeeping.purge(connection)


async def hasten_commands(database: Database) -> None:
    async with database.transaction() as connection:
        await inbox_housekeeping.hasten(connection, ahead=timedelta(minutes=20))


async def bring_commands_forward(database: Database) -> None:
    async with database.transaction() as connection:
        await inbox_housekeeping.bring_forward(
            connection, timedelta(hours=3), after=datetime.now(UTC)
        )


async def purge_steps(database: Database) -> None:
    async with database.transaction() as connection:
        await step_retention.purge(connection, days=36_500)


async def take_accounts(database: Database) -> None:
    await WaitingEntries(database).take(4)


@pytest.mark.parametrize(
    ("service", "ask", "column"),
    [
        ("ledger_read", take_accounts, "waiting_account.due_at"),
        ("payments", purge_commands, "inbox.finished_at"),
        ("payments", hasten_commands, "inbox.due_at"),
        ("payments", bring_commands_forward, "inbox.due_at"),
        ("onboarding", purge_steps, "saga_steps.recorded_at"),
        ("payments", expiring.expire, "wires.approval_expires_at"),
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

    assert await index_conditions(environment, service, column, noted)


async def claim(database: Database) -> Asked:
    """The statement by which the driver claims commands."""
    # The driver logs a statement after it was executed.
    noted: asyncio.Future[Asked] = asyncio.get_running_loop().create_future()

    def note(query: asyncpg.connection.LoggedQuery) -> None:
        noted.set_result((query.query, tuple(query.args)))

    async with database.driver() as connection:
        with connection.query_logger(note):
            await inbox.claim(connection, 0)
            return await asyncio.wait_for(noted, 10 * pace())


async def test_due_commands_are_found_by_their_time(environment: Environment) -> None:
    async with asked(environment, "payments") as (database, _):
        statement = await claim(database)

    assert await index_conditions(environment, "payments", "inbox.due_at", [statement])


async def accept(database: Database) -> Asked:
    """The statement that looks for what an arriving command has to wait for."""
    arriving = NewCommand(
        command_id=uuid4(),
        operation="o",
        message_id="m",
        request_id="r",
        principal=b"",
        tenant="tenant",
        body=b"",
        body_hash="h",
        reply_to=None,
        deadline=0.0,
    )
    noted: list[Asked] = []
    note_into(database, noted)
    async with database.transaction() as connection:
        await inbox_acceptance.accept(connection, arriving, "key", lease=False)
        await connection.rollback()
    (statement,) = [one for one in noted if "ordering_key = " in one[0] and "UPDATE" not in one[0]]
    return statement


@pytest.mark.parametrize("service", ["onboarding", "webhook_dispatcher"])
@pytest.mark.parametrize("ask", [claim, accept])
async def test_earlier_commands_are_found_by_their_key_where_statistics_know_of_no_open_command(
    environment: Environment, service: str, ask: Callable[[Database], Awaitable[Asked]]
) -> None:
    async with asked(environment, service) as (database, _):
        statement = await ask(database)

    async with statistics_of_finished_commands(environment, service) as connection:
        found = await plan(connection, statement)

    assert [row for row in found if "Index Cond" in row and "(ordering_key = " in row]
