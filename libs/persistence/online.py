"""Indexes and constraints of tables that are large and in use, for revisions: services go on reading and writing while
they are built or checked.

That is done outside of a transaction. A run that is interrupted repeats the revision from its beginning: every
statement of such a revision can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from alembic import op
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

_IS_INVALID = text(
    "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(:name) AND NOT indisvalid)"
)
_EXISTS = text("SELECT to_regclass(:name) IS NOT NULL")
_PARTITIONS = text(
    """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(:table) AND NOT EXISTS (
        SELECT FROM pg_inherits x JOIN pg_index p ON p.indexrelid = x.inhrelid
        WHERE x.inhparent = to_regclass(:name) AND p.indrelid = c.oid
    )
    ORDER BY c.relname
    """
)


def create_index(name: str, table: str, definition: str, *, unique: bool = False) -> None:
    """Build an index of a table that has no partitions, unless it is there and whole.

    Args:
        definition: what follows the table in `CREATE INDEX`, such as `(status, id) WHERE is_slow`.
    """
    with _outside_of_transactions():
        _create(name, table, definition, "UNIQUE INDEX" if unique else "INDEX")


def create_partitioned_index(name: str, table: str, definition: str) -> None:
    """Build an index of a partitioned table: of each partition without locking it, and then of the whole.

    Partitions that are made meanwhile have it from the beginning.
    """
    with _outside_of_transactions():
        _with_short_lock(
            "-- squawk-ignore require-concurrent-index-creation\n"
            f"CREATE INDEX IF NOT EXISTS {name} ON ONLY {table} {definition}"
        )
        while missing := _partitions_without(name, table):
            partition = missing[0]
            of_partition = f"{partition}_{name.removeprefix(f'{table}_')}"
            try:
                _create(of_partition, partition, definition)
                _with_short_lock(f"ALTER INDEX {name} ATTACH PARTITION {of_partition}")
            except DBAPIError as error:
                if not isinstance(error.driver_exception, asyncpg.UndefinedTableError):
                    raise
                if op.get_bind().scalar(_EXISTS, {"name": partition}):
                    raise
                # Retention drops partitions that are too old, at any moment.


def drop_index(name: str) -> None:
    """Drop an index of a table that has no partitions, if it is there."""
    with _outside_of_transactions():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


def validate_constraint(table: str, name: str) -> None:
    """Have the rows that are there checked against a constraint that was added as `NOT VALID`."""
    with _outside_of_transactions():
        op.execute(
            f"-- squawk-ignore prefer-robust-stmts\nALTER TABLE {table} VALIDATE CONSTRAINT {name}"
        )


def _create(name: str, table: str, definition: str, kind: str = "INDEX") -> None:
    if not op.get_context().as_sql and op.get_bind().scalar(_IS_INVALID, {"name": name}):
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")  # an interrupted run left it
    op.execute(f"CREATE {kind} CONCURRENTLY IF NOT EXISTS {name} ON {table} {definition}")


def _partitions_without(name: str, table: str) -> list[str]:
    if op.get_context().as_sql:
        return []
    return list(op.get_bind().scalars(_PARTITIONS, {"table": table, "name": name}))


@contextmanager
def _outside_of_transactions() -> Iterator[None]:
    """Without a limit for waiting: builds and checks wait for older transactions, and hold up nothing meanwhile."""
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")
        try:
            yield
        finally:
            op.execute("RESET lock_timeout")


def _with_short_lock(statement: str) -> None:
    """A statement that locks the table for a moment: while it waits for that, others wait behind it."""
    op.execute("RESET lock_timeout")
    try:
        op.execute(statement)
    finally:
        op.execute("SET lock_timeout = 0")
