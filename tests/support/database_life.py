"""The life of a test's database server: see `libs.persistence.continuity`. A migrated database trusts its first one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text

from libs.persistence.continuity import open_cases
from libs.persistence.engine import Database


async def distrust_life(
    database: Database, *, lost_seconds: float = 0.0, began_seconds: float = 0.0
) -> None:
    """As if the present life was not checked yet, and the database had gone back.

    Args:
        lost_seconds: so long ago the present life was first seen: nothing was lost since.
        began_seconds: so long before that the trusted life was last seen: all that was lost is younger.
    """
    async with database.transaction() as connection:
        await connection.execute(text("DELETE FROM database_life"))
        await connection.execute(
            text(
                "INSERT INTO database_life (started_at, first_seen_at, last_seen_at, checked_at) VALUES"
                " (now() - interval '10 years', now() - interval '10 years',"
                " clock_timestamp() - make_interval(secs => :began), now() - interval '9 years'),"
                " (pg_postmaster_start_time(), clock_timestamp() - make_interval(secs => :lost),"
                " clock_timestamp(), NULL)"
            ),
            {"lost": lost_seconds, "began": lost_seconds + began_seconds},
        )


async def set_clock_back(
    database: Database,
    seconds: float,
    *,
    away_seconds: float = 0.0,
    process_seconds: float = 0.0,
) -> None:
    """As if the database's clock had shown so much more when its lives were seen last.

    Args:
        away_seconds: for how long no process has seen the database since.
        process_seconds: by how much the clocks of processes were set back as well.
    """
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE database_life SET"
                " first_seen_at = first_seen_at + make_interval(secs => :ahead),"
                " last_seen_at = clock_timestamp() + make_interval(secs => :ahead),"
                " process_ahead = make_interval(secs => :process_ahead)"
            ),
            {"ahead": seconds - away_seconds, "process_ahead": process_seconds - seconds},
        )


async def trust_life(database: Database) -> None:
    """As a migrated database is: its present life counts as checked."""
    async with database.transaction() as connection:
        await connection.execute(text("DELETE FROM database_life"))
        await connection.execute(
            text(
                "INSERT INTO database_life (started_at, checked_at)"
                " VALUES (pg_postmaster_start_time(), clock_timestamp())"
            )
        )


async def missing_records(database: Database) -> list[str]:
    """Those of the open cases."""
    async with database.transaction() as connection:
        cases = await open_cases(connection)
    return [record for case in cases for record in case.missing_records]


@asynccontextmanager
async def distrusted(
    database: Database, *, lost_seconds: float = 0.0, began_seconds: float = 0.0
) -> AsyncIterator[None]:
    """As `distrust_life`, until the block ends."""
    await distrust_life(database, lost_seconds=lost_seconds, began_seconds=began_seconds)
    try:
        yield
    finally:
        await trust_life(database)
