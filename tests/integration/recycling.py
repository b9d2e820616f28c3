"""One migrated database for many tests, each of which finds it as migrations left it.

Emptying what a test has filled takes a tenth of the time of copying the template. It is done by one session: a new one
would read the catalogue of all tables anew, which takes PostgreSQL 40 ms of processor time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import asyncpg

from deploy.local.postgres import SUPERUSER
from deploy.local.services import ROLES
from tests.integration.loop_beside import LoopBeside
from tests.support.infrastructure import Environment

MIGRATIONS = "alembic_version"
_TABLES = """
SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY($1) AND c.relname <> $2
"""
_SEQUENCES = """
SELECT format('%I.%I', schemaname, sequencename) AS name, start_value, last_value FROM pg_sequences
"""
_LARGE = """
SELECT name FROM unnest($1::text[]) AS t (name) WHERE pg_total_relation_size(name::regclass) > $2
"""
LARGE_BYTES = 1024 * 1024
"""A table that is larger, with its indexes, is truncated, which makes new files for all of these. Rows of others are
deleted, in a third of the processor time.
"""
_END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_QUIETLY = "SET session_replication_role = replica; SET client_min_messages = warning"
"""No trigger fires for what is done to a table."""


class RecycledDatabase:
    """The database of `environment`, of which no process may be left when it is emptied.

    Its session outlives the event loops of tests.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._beside = LoopBeside("recycling")
        self._connection: asyncpg.Connection | None = None
        self._tables: set[str] | None = None
        self._filled: list[str] = []
        self._sequences: dict[str, int | None] = {}

    def urls(self) -> Mapping[str, str]:
        """By role. The database is made when this is asked for first."""
        urls = self.environment.database_urls
        if self._tables is None:
            self._beside.begin(self._prepare(urls[SUPERUSER])).result()
        return urls

    async def empty(self) -> None:
        """As migrations left it, for the next test."""
        await asyncio.wrap_future(self._beside.begin(self._empty()))

    def close(self) -> None:
        try:
            if self._connection is not None:
                self._beside.begin(self._connection.close()).result()
        finally:
            self._beside.close()

    async def _prepare(self, url: str) -> None:
        """Note what migrations made."""
        self._connection = connection = await asyncpg.connect(url)
        await connection.execute(_QUIETLY)
        await connection.execute("DROP SCHEMA IF EXISTS pristine CASCADE; CREATE SCHEMA pristine")
        self._tables = await _tables(connection)
        self._filled = await _filled(connection, self._tables)
        for number, table in enumerate(self._filled):
            await connection.execute(f"CREATE TABLE pristine.t{number} AS TABLE {table}")
        for row in await connection.fetch(_SEQUENCES):
            self._sequences[row["name"]] = row["last_value"]

    async def _empty(self) -> None:
        assert self._connection is not None
        assert self._tables is not None
        connection = self._connection
        await connection.execute(_END_SESSIONS)
        tables = await _tables(connection)
        if added := tables - self._tables:
            await connection.execute(f"DROP TABLE {', '.join(added)} CASCADE")
        if filled := await _filled(connection, tables - added):
            found = await connection.fetch(_LARGE, filled, LARGE_BYTES)
            if large := [row["name"] for row in found]:
                await connection.execute(f"TRUNCATE {', '.join(large)} CASCADE")
            small = (f"DELETE FROM {table}" for table in filled if table not in large)
            await connection.execute("; ".join(small))
        again = (f"INSERT INTO {table} TABLE pristine.t{n}" for n, table in enumerate(self._filled))
        await connection.execute("; ".join(again))
        for row in await connection.fetch(_SEQUENCES):
            before = self._sequences.get(row["name"])
            if row["last_value"] != before:
                value = row["start_value"] if before is None else before
                is_called = before is not None
                set_value = "SELECT setval($1::text::regclass, $2, $3)"
                await connection.execute(set_value, row["name"], value, is_called)


async def _tables(connection: asyncpg.Connection) -> set[str]:
    return {row[0] for row in await connection.fetch(_TABLES, list(ROLES), MIGRATIONS)}


async def _filled(connection: asyncpg.Connection, tables: set[str]) -> list[str]:
    """Those that have rows."""
    each = (f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in sorted(tables))
    return [row[0] for row in await connection.fetch(" UNION ALL ".join(each))]
