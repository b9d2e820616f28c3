"""What PostgreSQL's planner knows of a table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.support.infrastructure import Environment


@asynccontextmanager
async def statistics_of_one_row(environment: Environment, table: str) -> AsyncIterator[None]:
    """As if the table had been nearly empty at its last vacuum, and what is in it had come since.

    Args:
        table: with its schema.
    """
    superuser = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await superuser.execute(
            "UPDATE pg_class SET reltuples = 1, relpages = 100 WHERE oid = $1::text::regclass",
            table,
        )
        yield
    finally:
        await superuser.execute(f"ANALYZE {table}")
        await superuser.close()


@asynccontextmanager
async def statistics_of_many_rows(
    environment: Environment, service: str, table: str
) -> AsyncIterator[asyncpg.Connection]:
    """A connection whose planner takes the table, which has pages, for a large one and knows nothing else of its rows.
    What other tests have left in it, and when it was analyzed last, does not decide which index is the cheapest.
    """
    async with _rolled_back(environment, service) as superuser:
        await superuser.execute(
            "DELETE FROM pg_statistic WHERE starelid = $1::text::regclass", table
        )
        await superuser.execute(
            "UPDATE pg_class SET reltuples = 100000000, relpages = 1 WHERE oid = $1::text::regclass",
            table,
        )
        yield superuser


_FINISHED = """
    INSERT INTO inbox (command_id, operation, ordering_key, message_id, request_id, principal, body, deadline,
        finished_at, audited)
    SELECT gen_random_uuid(), 'o', gen_random_uuid()::text, 'm', 'r', '', '', 0, now(), true
    FROM generate_series(1, 2000)
    """


@asynccontextmanager
async def statistics_of_finished_commands(
    environment: Environment, service: str
) -> AsyncIterator[asyncpg.Connection]:
    """A connection whose planner knows the inbox from a time when it had no open command. Its rows are not kept."""
    async with _rolled_back(environment, service, then="ANALYZE inbox") as superuser:
        await superuser.execute(_FINISHED)
        await superuser.execute("ANALYZE inbox")
        yield superuser


@asynccontextmanager
async def _rolled_back(
    environment: Environment, service: str, *, then: str | None = None
) -> AsyncIterator[asyncpg.Connection]:
    """A superuser's transaction in the schema of a service, whose changes are not kept; `then` is executed after it."""
    superuser = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await superuser.execute(f"SET search_path = {service}")
        transaction = superuser.transaction()
        await transaction.start()
        try:
            yield superuser
        finally:
            await transaction.rollback()
            if then is not None:
                await superuser.execute(then)
    finally:
        await superuser.close()
