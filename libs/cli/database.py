"""What is done beside a service, on its database: making the first operator."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import ProgrammingError

from libs.cli.refused_connections import database_refusal
from libs.client.errors import OperatorError, UnknownOutcome
from libs.persistence import audit
from libs.persistence.addressing import BadDatabaseUrl
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.audit import Entry
from libs.persistence.availability import is_away
from libs.persistence.engine import open_database
from libs.secret_sources import BadSecret, read_secret
from libs.tls import BadCertificates, ca_file_setting

T = TypeVar("T")

OF_ANOTHER_RELEASE = {"42P01", "42703", "42883"}
"""SQLSTATEs: a table, a column or a function does not exist."""


def database_variable(service: str) -> str:
    """The variable that has the URL of the service's database."""
    return f"BANKSIDE_{service.upper()}_DATABASE_URL"


def in_transaction(
    service: str, work: Callable[[AsyncConnection], Awaitable[T]], *, when_lost: str
) -> T:
    """What `work` does in a transaction of the service's database.

    Args:
        when_lost: the sentence when it may have been done.

    Raises:
        OperatorError: the database is not known or cannot be reached; nothing was done.
        UnknownOutcome: the answer to the commit is lost.
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

    is_committing = False

    async def run() -> T:
        nonlocal is_committing
        try:
            async with database.transaction() as connection:
                done = await work(connection)
                is_committing = True
            return done
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
        if is_committing and is_away(error):
            raise UnknownOutcome(when_lost) from error
        refusal = database_refusal(variable, error)
        if refusal is None:
            raise
        raise OperatorError(f"The database of {service} cannot be used: {refusal}") from error


async def record(
    connection: AsyncConnection,
    action: str,
    **subject: str | float | None,
) -> None:
    """Append what the user of this terminal does, in the transaction that does it, as the last of it.

    Args:
        subject: to what, without anything sensitive.
    """
    name = _user_name()
    entry = Entry(
        actor=f"operator:{name}",
        action=action,
        outcome="ok",
        subject={"user": name, **subject},
    )
    await audit.append(connection, [entry])


def _user_name() -> str:
    """The user who runs this command, as the system knows it: not what the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        return f"uid {os.getuid()}"
