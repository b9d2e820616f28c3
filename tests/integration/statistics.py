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
