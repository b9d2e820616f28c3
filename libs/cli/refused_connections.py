"""Why a database or another server cannot be used, as a sentence that says what to set."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

import asyncpg
from sqlalchemy.exc import DBAPIError

from libs.persistence.availability import is_away

SCHEMAS = '"Upgrading" in deploy/README.md'


def database_refusal(variable: str, error: Exception) -> str | None:
    """The sentence; None where the error says nothing of the connection.

    Args:
        variable: that has the database's URL.
        error: of SQLAlchemy or of asyncpg.
    """
    cause = error.driver_exception if isinstance(error, DBAPIError) else error
    if isinstance(cause, asyncpg.InvalidAuthorizationSpecificationError):
        return f"PostgreSQL refuses the login in {variable}: run deploy/postgres/schemas.sql ({SCHEMAS})."
    if isinstance(cause, asyncpg.InvalidCatalogNameError):
        return f"set {variable} to a database that exists."
    if is_away(error):
        return unreachable(variable, "BANKSIDE_DATABASE_CA_FILE", error)
    return None


def unreachable(variable: str, ca_setting: str, error: Exception) -> str:
    """The sentence for a server that does not answer, or whose certificate is not trusted."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes) or any(
        "CERTIFICATE_VERIFY_FAILED" in str(cause) for cause in causes
    ):
        return f"set {ca_setting} or the host in {variable}: the server's certificate is not one to trust there."
    return f"start the server, or set {variable}: it does not answer ({type(error).__name__})."


def _causes(error: BaseException | None) -> Iterable[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
