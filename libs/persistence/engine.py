"""The database of one service: an engine with every wait bounded.

Each service connects with its own login; the login's `search_path` is the service's schema, so no name in code
carries a schema and no service can read another's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from typing import NamedTuple

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool
from sqlalchemy.util import greenlet_spawn

from libs.persistence.keepalive import KEEPALIVE

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 15
IDLE_IN_TRANSACTION_SECONDS = 30
EVENTS_RECORDED = "bankside.events_recorded"
"""Key in `AsyncConnection.info`: the transaction under way has recorded events."""
OPENED_AT = "bankside.opened_at"
"""Key in the `info` of a connection of the pool: when it was opened (monotonic clock)."""
KEPT = 4
"""Connections that `driver` keeps for its next user, past SQLAlchemy's pool: a tenth less of the gateway's processor
time for a read. As long as nobody else wants them.
"""
KEPT_SECONDS = 60
"""Then they are used no more before they were in the pool, which ends those that are old."""
DOUBT_SECONDS = 5.0
"""The use of a connection that is given up after so long may have met a server that vanished without FIN or RST. The
connections that were opened before that moment are then replaced, not used.
"""

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that breaks while a statement begins
    asyncpg.InvalidAuthorizationSpecificationError,  # logins are being changed
    asyncpg.ReadOnlySQLTransactionError,  # a standby, until the failover is over
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionRollbackError,  # a deadlock or a serialization failure
    asyncpg.LockNotAvailableError,
    PoolTimeoutError,
    OSError,
    TimeoutError,
)


def is_away(error: BaseException) -> bool:
    """Whether the error means that the database cannot be used now, rather than that a statement was wrong."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or _means_away(error.orig)
    return _means_away(error)


def _means_away(error: BaseException | None) -> bool:
    if isinstance(error, AsyncAdapt_asyncpg_dbapi.Error):
        error = error.__cause__ or error  # SQLAlchemy's name for what asyncpg raised
    # asyncpg refuses a value of a statement by an InterfaceError that is a ValueError too.
    return isinstance(error, _AWAY) and not isinstance(error, ValueError)


class _Driver(NamedTuple):
    """asyncpg's own connection, which is out of the pool as `pooled`; to be used until then (the loop's clock)."""

    pooled: PoolProxiedConnection
    connection: asyncpg.Connection
    until: float

    def is_new(self) -> bool:
        return asyncio.get_running_loop().time() < self.until


_IS_READ_ONLY = text("SELECT current_setting('transaction_read_only') = 'on'")


class Database:
    """Transactions on the service's own schema.

    `transaction()` commits when its body ends and rolls back when it raises. Never await HTTP inside one.
    """

    def __init__(self, engine: AsyncEngine, *, kept: int = 0) -> None:
        self.engine = engine
        self._doubted_at = float("-inf")
        """Connections that were opened before are replaced at their next use (monotonic clock)."""
        event.listen(engine.sync_engine, "connect", _opened)
        event.listen(engine.sync_engine, "checkout", self._refuse_doubted)
        event.listen(engine.sync_engine, "handle_error", _end_what_timed_out)
        self._kept_at_most = kept
        self._kept: list[_Driver] = []
        self._closed = False
        self._asking = 0
        """Those whom the pool has not yet given a connection."""
        self.events_recorded = asyncio.Event()
        """Set after each commit of this process that recorded events; the outbox's relay clears it."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        async with self._connected() as connection:
            # The mark may be there from a transaction that was rolled back.
            connection.info.pop(EVENTS_RECORDED, None)
            async with connection.begin():
                yield connection
            if EVENTS_RECORDED in connection.info:
                self.events_recorded.set()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """Read-only; every statement sees the same committed state, so that what is read together belongs together."""
        async with self.transaction() as connection:
            await connection.execute(
                text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            )
            yield connection

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncConnection]:
        """Every statement is a transaction by itself, with nothing sent around it."""
        async with self._connected() as plain:
            yield await plain.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def driver(self, *, held: bool = False) -> AsyncIterator[asyncpg.Connection]:
        """asyncpg's own connection, on which every statement is a transaction by itself.

        For a statement that is executed thousands of times a second: one round trip rather than three, and a third of
        the processor time. What it raises is asyncpg's; while it connects, SQLAlchemy's too. Anything but a statement
        that was wrong costs the connection, since the engine does not see it; what was being executed is cancelled.

        Args:
            held: used now and then over a long time, so that its end says nothing of the server.
        """
        driver = await self._driver()
        try:
            with nullcontext() if held else self._doubting(driver.pooled.info[OPENED_AT]):
                yield driver.connection
        except BaseException as error:
            if isinstance(error, asyncpg.PostgresError | ValueError) and not is_away(error):
                self._release(driver)
            elif isinstance(error, GeneratorExit):
                driver.pooled.invalidate()
            else:
                # Politely: by itself, the server would go on with the statement, and commit it.
                await greenlet_spawn(driver.pooled.invalidate)
            raise
        self._release(driver)

    async def _driver(self) -> _Driver:
        while True:
            driver = self._kept.pop() if self._kept else await self._from_pool()
            if driver.connection.is_closed():
                # The server has ended it, and nobody has noticed yet. The pool makes another one.
                driver.pooled.invalidate()
            elif driver.is_new():
                return driver
            else:
                driver.pooled.close()

    async def _from_pool(self) -> _Driver:
        with self._asking_the_pool():
            pooled = await self.engine.raw_connection()
        until = asyncio.get_running_loop().time() + KEPT_SECONDS
        return _Driver(pooled, pooled.driver_connection, until)

    def _release(self, driver: _Driver) -> None:
        if self._closed:
            driver.pooled.invalidate()
        elif not self._asking and len(self._kept) < self._kept_at_most:
            self._kept.append(driver)
        else:
            driver.pooled.close()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        async with AsyncExitStack() as stack:
            with self._asking_the_pool():
                connection = await stack.enter_async_context(self.engine.connect())
            with self._doubting(connection.info[OPENED_AT]):
                yield connection

    @contextmanager
    def _doubting(self, opened_at: float) -> Iterator[None]:
        """The use of a connection; see `DOUBT_SECONDS`.

        A connection that is doubted already tells nothing of those that were opened since.
        """
        began = time.monotonic()
        try:
            yield
        except (TimeoutError, asyncio.CancelledError):
            if time.monotonic() - began >= DOUBT_SECONDS and opened_at >= self._doubted_at:
                self._doubted_at = time.monotonic()
                while self._kept:
                    self._kept.pop().pooled.invalidate()
            raise

    def _refuse_doubted(self, _: object, record: ConnectionPoolEntry, __: object) -> None:
        """The pool then makes another connection. A farewell to a server that is gone would take two seconds."""
        if record.info[OPENED_AT] < self._doubted_at:
            if record.driver_connection is not None:
                record.driver_connection.terminate()
            raise DisconnectionError

    @contextmanager
    def _asking_the_pool(self) -> Iterator[None]:
        """Nobody waits for what is kept: now one is given back, and later what is released."""
        pool = self.engine.pool
        if self._kept and isinstance(pool, QueuePool):
            free = pool.size() - pool.checkedout()
            if free <= self._asking:
                self._kept.pop().pooled.close()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    @asynccontextmanager
    async def driver_transaction(self, opening: str = "") -> AsyncIterator[asyncpg.Connection]:
        """As `transaction`, on asyncpg's own connection. It raises what `driver` does, and the body lets it through.

        Args:
            opening: statements without parameters, sent along with BEGIN: one round trip for all.
        """
        async with self.driver() as connection:
            try:
                await connection.execute(f"BEGIN; {opening}")
                yield connection
            except (asyncpg.PostgresError, ValueError) as error:
                # After anything else, the connection is given up.
                if not is_away(error):
                    await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")

    async def ping(self) -> None:
        """Readiness: raises when no statement can be executed, or nothing can be written, as on a standby."""
        async with self._connected() as connection:
            found = await connection.execute(_IS_READ_ONLY)
            if found.scalar_one():
                raise ConnectionError("the database is read-only")

    async def close(self) -> None:
        self._closed = True
        while self._kept:
            self._kept.pop().pooled.close()
        await self.engine.dispose()


def open_database(url: str, service: str, *, pool_size: int = 10) -> Database:
    """An engine that connects on first use. `url` is `postgresql://login:password@host:port/database`.

    Args:
        pool_size: connections at most; a wait for one ends after `CONNECT_SECONDS` with an error.
    """
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg"),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=CONNECT_SECONDS,
        # As few as are enough do all the work (8 of payments' 20 under load): each learns types and plans anew.
        pool_use_lifo=True,
        pool_pre_ping=False,
        pool_recycle=1800,
        connect_args={
            "timeout": CONNECT_SECONDS,
            "command_timeout": STATEMENT_SECONDS,
            "server_settings": {
                "application_name": f"bankside-{service}",
                # A server that is there ends a statement before it times out here.
                "statement_timeout": str(STATEMENT_SECONDS * 900),
                "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_SECONDS * 1000),
                "TimeZone": "UTC",
                **KEEPALIVE,
            },
        },
    )
    return Database(engine, kept=min(KEPT, pool_size // 2))


def _opened(_: object, record: ConnectionPoolEntry) -> None:
    record.info[OPENED_AT] = time.monotonic()


def _end_what_timed_out(context: ExceptionContext) -> None:
    """A statement that timed out here, rather than being ended by the server: the connection's peer is gone."""
    if isinstance(context.original_exception, TimeoutError):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False  # `Database` decides about the others
