"""The database of one service: two pools side by side, with every wait bounded.

| method | pool | for |
|---|---|---|
| `transaction`, `snapshot`, `autocommit` | SQLAlchemy's | ordinary statements: Core expressions |
| `driver`, `driver_transaction` | asyncpg's | set-based statements of hot paths: SQL constants |

A statement over asyncpg takes a third of the processor time, and one round trip rather than three.

Each service connects with its own login; the login's `search_path` is the service's schema, so no name in code
carries a schema and no service can read another's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DisconnectionError, EmulatedDBAPIException
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from libs.persistence.addressing import connect_arguments
from libs.persistence.async_engine import AsyncConnection, AsyncEngine, create_async_engine
from libs.persistence.driver_pool import RECYCLE_SECONDS, DriverPool
from libs.persistence.keepalive import KEEPALIVE
from libs.persistence.pool_metrics import observe_pool
from libs.persistence.vanished_server import ConnectionDoubt
from libs.tls import BadCertificates

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 15
IDLE_IN_TRANSACTION_SECONDS = 30
WRITABLE = {"target_session_attrs": "read-write"}
"""While a failover is under way the address may still lead to a standby. A connection to that would stay in a pool
after the address has moved: its server is up, and is never promoted. The URL may say otherwise.
"""
EVENTS_RECORDED = "bankside.events_recorded"
"""Key in `AsyncConnection.info`: the transaction under way has recorded events."""
OPENED_AT = "bankside.opened_at"
"""Key in `AsyncConnection.info`: when the connection was opened (monotonic clock)."""

IS_READ_ONLY = "the database is read-only"
_READ_ONLY = "SELECT current_setting('transaction_read_only') = 'on'"
_IS_READ_ONLY = text(_READ_ONLY)
_SNAPSHOT = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


class Database:
    """Transactions on the service's own schema. Never await HTTP inside one."""

    def __init__(self, engine: AsyncEngine, drivers: DriverPool, doubt: ConnectionDoubt) -> None:
        self.engine = engine
        self._drivers = drivers
        self._doubt = doubt
        event.listen(engine.sync_engine, "connect", _mark_opened)
        event.listen(engine.sync_engine, "checkout", self._refuse_doubted)
        event.listen(engine.sync_engine, "handle_error", _close_what_is_of_no_use)
        self.events_recorded = asyncio.Event()
        """Set after each commit of this process that recorded events; the outbox's relay clears it."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Commits when its body ends and rolls back when it raises."""
        async with self._connected() as connection:
            # The mark may be there from a transaction that was rolled back.
            connection.info.pop(EVENTS_RECORDED, None)
            async with connection.begin():
                yield connection
            if EVENTS_RECORDED in connection.info:
                self.events_recorded.set()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """A read-only transaction, in which every statement sees the same committed state."""
        async with self.transaction() as connection:
            await connection.execute(_SNAPSHOT)
            yield connection

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncConnection]:
        """Every statement is a transaction by itself, with nothing sent around it."""
        async with self._connected() as plain:
            yield await plain.execution_options(isolation_level="AUTOCOMMIT")

    def driver(self, *, watched: bool = True) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """As `DriverPool.connection`."""
        return self._drivers.connection(watched=watched)

    def driver_transaction(
        self, begin: str = "BEGIN"
    ) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """As `DriverPool.transaction`."""
        return self._drivers.transaction(begin)

    async def ping(self) -> None:
        """Readiness: raises when either pool executes no statement, or nothing can be written, as on a standby; such a
        connection is closed.
        """
        async with self._connected() as connection:
            if (await connection.execute(_IS_READ_ONLY)).scalar_one():
                await connection.invalidate()
                raise ConnectionError(IS_READ_ONLY)
        async with self.driver() as driver:
            if await driver.fetchval(_READ_ONLY):
                raise ConnectionError(IS_READ_ONLY)

    async def close(self) -> None:
        self._drivers.close()
        await self.engine.dispose()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        async with self.engine.connect() as connection:
            with self._doubt.watching(connection.info[OPENED_AT]):
                yield connection

    def _refuse_doubted(self, _: object, record: ConnectionPoolEntry, __: object) -> None:
        """The pool then opens another connection. A polite close would take two seconds without a server."""
        if self._doubt.is_doubted(record.info[OPENED_AT]):
            if record.driver_connection is not None:
                record.driver_connection.terminate()
            raise DisconnectionError


def open_database(
    url: str,
    service: str,
    *,
    ca_file: str | None = None,
    pool_size: int = 10,
    name: str = "service",
) -> Database:
    """A database that is connected to at first use.

    Args:
        url: `postgresql://login:password@host:port/database`; `?sslmode=verify-full` and other
            parameters (see `addressing`) apply to both pools.
        ca_file: the CA of the server's certificate, instead of those that the system trusts. A renewed one counts for
            connections that are opened afterwards.
        pool_size: connections of each of the two pools at most; a wait for one ends after `CONNECT_SECONDS` with an
            error.
        name: of both pools in metrics, where a process opens several databases.
    """
    server_settings = {
        "application_name": f"bankside-{service}",
        # A server that is there ends a statement before it times out here.
        "statement_timeout": str(STATEMENT_SECONDS * 900),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_SECONDS * 1000),
        "TimeZone": "UTC",
        **KEEPALIVE,
    }
    connect_arguments(url, ca_file)  # raises now for what cannot work

    async def connect() -> asyncpg.Connection:
        try:
            arguments = connect_arguments(url, ca_file)
        except BadCertificates as error:  # while the file of the CA is being replaced
            raise ConnectionError(str(error)) from error
        return await asyncpg.connect(
            **WRITABLE | arguments,
            timeout=CONNECT_SECONDS,
            command_timeout=STATEMENT_SECONDS,
            server_settings=server_settings,
        )

    doubt = ConnectionDoubt()
    drivers = DriverPool(
        connect,
        size=pool_size,
        doubt=doubt,
        connect_seconds=CONNECT_SECONDS,
    )
    engine = create_async_engine(
        "postgresql+asyncpg://",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        # Last in, first out: few connections do all the work (8 of payments' 20 under load), as each learns types and
        # plans by itself.
        pool_use_lifo=True,
        pool_pre_ping=False,
        pool_recycle=RECYCLE_SECONDS,
        async_creator=connect,
    )
    observe_pool(name, "asyncpg", lambda: drivers.in_use, pool_size)
    observe_pool(name, "sqlalchemy", partial(_checked_out, engine), pool_size)
    return Database(engine, drivers, doubt)


def _checked_out(engine: AsyncEngine) -> int:
    pool = engine.pool
    return pool.checkedout() if isinstance(pool, QueuePool) else 0


def _mark_opened(_: object, record: ConnectionPoolEntry) -> None:
    record.info[OPENED_AT] = time.monotonic()


def _close_what_is_of_no_use(context: ExceptionContext) -> None:
    """Where a statement timed out here, rather than being ended by the server, the connection's peer is gone; where
    nothing can be written, it has become a standby.
    """
    error = context.original_exception
    if isinstance(error, EmulatedDBAPIException):
        error = error.driver_exception
    if isinstance(error, TimeoutError | asyncpg.ReadOnlySQLTransactionError):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False  # `ConnectionDoubt` decides about the others
