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
    superuser = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await superuser.execute(f"SET search_path = {service}")
        rolled_back = superuser.transaction()
        await rolled_back.start()
        try:
            await superuser.execute(
                "DELETE FROM pg_statistic WHERE starelid = $1::text::regclass", table
            )
            await superuser.execute(
                "UPDATE pg_class SET reltuples = 100000, relpages = 1 WHERE oid = $1::text::regclass",
                table,
            )
            yield superuser
        finally:
            await rolled_back.rollback()
    finally:
        await superuser.close()


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
    superuser = await asyncpg.connect(environment.database_urls["postgres"])
    try:
        await superuser.execute(f"SET search_path = {service}")
        rolled_back = superuser.transaction()
        await rolled_back.start()
        try:
            await superuser.execute(_FINISHED)
            await superuser.execute("ANALYZE inbox")
            yield superuser
        finally:
            await rolled_back.rollback()
            await superuser.execute("ANALYZE inbox")
    finally:
        await superuser.close()
