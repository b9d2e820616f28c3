"""The bank's PostgreSQL, over asyncpg itself.

The balance read is benchmarked at thousands a second, and the driver alone answers four times as many as through an
ORM's engine. So all of the sandbox's statements are SQL constants over asyncpg; `tables` declares what they are about.
Every wait is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import asyncpg

from libs.persistence.addressing import connect_arguments
from libs.persistence.keepalive import KEEPALIVE

CONNECT_SECONDS = 5
QUEUE_SECONDS = 15
"""How long a request waits for one of the connections: a busy bank is slow before it says no."""
STATEMENT_SECONDS = 15
IDLE_IN_TRANSACTION_SECONDS = 30

Row = Mapping[str, Any]

UNAVAILABLE: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that breaks while a statement begins
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,  # no connection, memory or disk is left
)
"""What a statement raises when the database is away, overloaded or being restarted."""


class Connection(Protocol):
    """What the bank uses of the driver's connection. Parameters are `$1`, `$2`, …"""

    async def execute(self, query: str, *args: object) -> str: ...

    async def fetch(self, query: str, *args: object) -> Sequence[Row]: ...

    async def fetchrow(self, query: str, *args: object) -> Row | None: ...

    async def fetchval(self, query: str, *args: object) -> Any: ...

    def transaction(self) -> AbstractAsyncContextManager[object]: ...


class _PooledConnection(asyncpg.Connection):  # type: ignore[misc]
    def get_reset_query(self) -> str:
        """Nothing: no statement here leaves a setting, a session lock or a listener behind."""
        return ""


class Database:
    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """A connection where each statement is a snapshot of its own."""
        async with self._pool.acquire(timeout=QUEUE_SECONDS) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Commits when the body ends, rolls back when it raises. Read committed: locks decide who sees what."""
        async with (
            self._pool.acquire(timeout=QUEUE_SECONDS) as connection,
            connection.transaction(),
        ):
            yield connection

    async def ping(self) -> None:
        """Readiness: raises when the bank's tables cannot be read."""
        async with self.reading() as connection:
            await connection.fetchval("SELECT count(*) FROM feed")


@asynccontextmanager
async def open_database(
    url: str, *, connections: int, ca_file: str | None = None
) -> AsyncIterator[Database]:
    """A pool that connects on first use. `url` and `ca_file` are as in `libs.persistence.engine.open_database`."""
    pool = asyncpg.create_pool(
        **connect_arguments(url, ca_file),
        min_size=0,
        max_size=connections,
        connection_class=_PooledConnection,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
        server_settings={
            "application_name": "bankside-provider_sandbox",
            "statement_timeout": str(STATEMENT_SECONDS * 1000),
            "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_SECONDS * 1000),
            "TimeZone": "UTC",
            # A plan lives as long as its session: one made while a table was small would read all of it for ever.
            "enable_seqscan": "off",
            "jit": "off",
            **KEEPALIVE,
        },
    )
    await pool
    try:
        yield Database(pool)
    finally:
        pool.terminate()
