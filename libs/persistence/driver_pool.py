"""A pool of asyncpg's own connections, for statements that are executed thousands of times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress

import asyncpg

from libs.persistence.availability import is_away
from libs.persistence.vanished_server import ConnectionDoubt

CLOSE_SECONDS = 2.0
"""A connection that is given up has so long to cancel its statement and to say goodbye."""
IDLE_SECONDS = 300.0
"""A connection that was not used for so long is closed."""
MAX_QUERIES = 1_000_000
"""Then a connection is replaced: its server process has grown, and a new one has to plan each statement anew."""


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    opened_at: float
    """Monotonic clock."""

    def get_reset_query(self) -> str:
        """Nothing: no statement of ours leaves a session setting, a session lock or a listener behind."""
        return ""


class DriverPool:
    """At most `size` connections, opened at first use; the one used last is used next.

    What it raises is asyncpg's, `TimeoutError` or `OSError`.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        doubt: ConnectionDoubt,
        connect_seconds: float,
        statement_seconds: float,
        server_settings: Mapping[str, str],
    ) -> None:
        self._url = url
        self._size = size
        self._doubt = doubt
        self._connect_seconds = connect_seconds
        self._statement_seconds = statement_seconds
        self._server_settings = dict(server_settings)
        self._opened: asyncpg.Pool | None = None
        self._closed = False

    @asynccontextmanager
    async def connection(self, *, watched: bool = True) -> AsyncIterator[asyncpg.Connection]:
        """One connection, on which every statement is a transaction by itself.

        An error other than a wrong statement closes the connection, after its statement was cancelled.

        Args:
            watched: false for a connection that waits for most of its time, so that its end says nothing of the server.
        """
        pool = await self._pool()
        connection = await self._acquire(pool)
        try:
            with self._doubt.watching(connection.opened_at) if watched else nullcontext():
                yield connection
        except BaseException as error:
            if isinstance(error, GeneratorExit):
                connection.terminate()  # nothing can be awaited any more
                raise
            if is_away(error) or not isinstance(error, asyncpg.PostgresError | ValueError):
                await _close(connection)
            await pool.release(connection, timeout=CLOSE_SECONDS)
            raise
        await pool.release(connection, timeout=CLOSE_SECONDS)

    @asynccontextmanager
    async def transaction(self, begin: str = "BEGIN") -> AsyncIterator[asyncpg.Connection]:
        """Commits when the body ends and rolls back when it raises.

        Args:
            begin: `BEGIN` and further statements without parameters, in one round trip.
        """
        async with self.connection() as connection:
            try:
                await connection.execute(begin)
                yield connection
            except (asyncpg.PostgresError, ValueError) as error:
                if not is_away(error):  # after anything else, the connection is closed
                    await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")

    def close(self) -> None:
        """Close all connections at once, and open no more. Whoever still executes a statement loses it."""
        self._closed = True
        if self._opened is not None:
            self._opened.terminate()

    async def _pool(self) -> asyncpg.Pool:
        if self._closed:
            raise asyncpg.InterfaceError("the database was closed")
        if self._opened is None:
            self._opened = asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._size,
                max_queries=MAX_QUERIES,
                max_inactive_connection_lifetime=IDLE_SECONDS,
                connection_class=_Connection,
                init=_mark_opened,
                timeout=self._connect_seconds,
                command_timeout=self._statement_seconds,
                server_settings=self._server_settings,
            )
        await (
            self._opened
        )  # opens the pool, which has no connections at first; later returns at once
        return self._opened

    async def _acquire(self, pool: asyncpg.Pool) -> asyncpg.Connection:
        async with asyncio.timeout(self._connect_seconds):
            while True:
                connection = await pool.acquire()
                if not self._doubt.is_doubted(connection.opened_at):
                    return connection
                connection.terminate()  # which gives its place in the pool back


async def _mark_opened(connection: _Connection) -> None:
    connection.opened_at = time.monotonic()


async def _close(connection: asyncpg.Connection) -> None:
    """Cancel the statement that is being executed, then close.

    Without the cancellation, the server would go on with the statement and commit it.
    """
    with suppress(Exception):  # `close` has aborted the connection by then
        await connection.close(timeout=CLOSE_SECONDS)
