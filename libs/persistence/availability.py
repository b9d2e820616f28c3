"""Which errors mean that the database cannot be used now, rather than that a statement was wrong."""

from __future__ import annotations

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that breaks while a statement begins
    asyncpg.InvalidAuthorizationSpecificationError,  # logins are being changed
    asyncpg.ReadOnlySQLTransactionError,  # a standby, until the failover is over
    asyncpg.FeatureNotSupportedError,  # an unlogged table, while the server recovers; a plan of before a migration
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionRollbackError,  # a deadlock or a serialization failure
    asyncpg.LockNotAvailableError,
    PoolTimeoutError,
    OSError,
    TimeoutError,
)


def is_away(error: BaseException) -> bool:
    """Whether `error`, of SQLAlchemy or of asyncpg, means that the database cannot be used now."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or is_away(error.driver_exception)
    # asyncpg refuses a parameter's value by an InterfaceError that is a ValueError too.
    return isinstance(error, _AWAY) and not isinstance(error, ValueError)
