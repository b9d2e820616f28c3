from __future__ import annotations

import asyncpg
import pytest

from libs.persistence.availability import is_away


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.InterfaceError("connection is closed"),
        # Seen when PostgreSQL was killed between the checkout of a connection and its first statement.
        asyncpg.InternalClientError("cannot switch to state 12; another operation is in progress"),
        asyncpg.AdminShutdownError("terminating connection"),
        # Two tasks of a gateway died of it while a database was restored.
        asyncpg.FeatureNotSupportedError(
            "cannot access temporary or unlogged relations during recovery"
        ),
        ConnectionRefusedError(),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_dying_connection_raises_means_that_the_database_is_away(error: Exception) -> None:
    assert is_away(error)


def test_a_statement_that_was_wrong_does_not() -> None:
    assert not is_away(asyncpg.UndefinedColumnError("there is no such column"))
    assert not is_away(ValueError())
