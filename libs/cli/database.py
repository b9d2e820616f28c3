"""Operators' commands that work on a service's database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import ProgrammingError

from libs.client.errors import OperatorError
from libs.persistence.addressing import BadDatabaseUrl
from libs.persistence.availability import is_away
from libs.persistence.engine import Database, open_database
from libs.secret_sources import BadSecret, read_secret
from libs.tls import BadCertificates, ca_file_setting

T = TypeVar("T")

OF_ANOTHER_RELEASE = {"42P01", "42703", "42883"}
"""SQLSTATEs: a table, a column or a function does not exist."""


def database_variable(service: str) -> str:
    """The variable that has the URL of the service's database."""
    return f"BANKSIDE_{service.upper()}_DATABASE_URL"


def with_database(service: str, work: Callable[[Database], Awaitable[T]]) -> T:
    """What `work` makes of the service's database.

    Raises:
        OperatorError: the database is not known or cannot be reached.
    """
    variable = database_variable(service)
    try:
        url = read_secret(variable)
    except BadSecret as error:
        raise OperatorError(str(error)) from None
    if url is None:
        raise OperatorError(f"Set {variable}, or start the stack (make up).")
    try:
        database = open_database(
            url,
            "operator",
            ca_file=ca_file_setting("DATABASE", service.upper()),
            pool_size=1,
        )
    except BadDatabaseUrl as error:
        raise OperatorError(f"{variable} is not the URL of a database: {error}.") from None
    except BadCertificates as error:
        raise OperatorError(f"Set BANKSIDE_DATABASE_CA_FILE: {error}.") from None

    async def run() -> T:
        try:
            return await work(database)
        finally:
            await database.close()

    try:
        return asyncio.run(run())
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) not in OF_ANOTHER_RELEASE:
            raise
        raise OperatorError(
            f"The database of {service} is not that of this release: run `make up` or `make migrate`."
        ) from error
    except Exception as error:
        if not is_away(error):
            raise
        raise OperatorError(
            f"The database of {service} cannot be reached: is the stack running (make status)?"
        ) from error
