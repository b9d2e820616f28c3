"""Which errors mean that the database cannot be used now, rather than that a statement was wrong."""

from __future__ import annotations

import re

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,  # a full disk, among others
    asyncpg.PostgresSystemError,  # a disk that fails to read or write
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

_DAMAGED = (asyncpg.UndefinedFileError, asyncpg.DuplicateFileError)
"""Of single tables, which the next attempt finds as they are."""

# Not all errors of files have a SQLSTATE of their own. A disk quota or a file at its largest size is an internal error,
# a file system that became read-only a missing privilege: the message tells them from faults of ours.
_SQLSTATES_WITH_FILES = {"XX000", "42501"}
_FILE_FAILED = re.compile(r"could not (?:create|extend|fsync|open|read|write)\b.* file\b")


def is_away(error: BaseException) -> bool:
    """Whether `error`, of SQLAlchemy or of asyncpg, means that the database cannot be used now."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or is_away(error.driver_exception)
    # asyncpg refuses a parameter's value by an InterfaceError that is a ValueError too.
    if isinstance(error, _AWAY):
        return not isinstance(error, (ValueError, *_DAMAGED))
    return (
        isinstance(error, asyncpg.PostgresError)
        and error.sqlstate in _SQLSTATES_WITH_FILES
        and _FILE_FAILED.match(str(error)) is not None
    )
