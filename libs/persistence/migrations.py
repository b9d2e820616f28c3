"""Runs every service's Alembic history, each as the owner of its schema: `python -m libs.persistence.migrations`.

A history is the folder `services/<name>/migrations/versions`. Revisions only go forward: a mistake is mended by the
next one.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.resources import files
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, pool, text
from sqlalchemy.exc import DBAPIError

from libs.persistence.addressing import BadDatabaseUrl, connect_arguments
from libs.persistence.async_engine import create_async_engine
from libs.persistence.keepalive import KEEPALIVE
from libs.secret_sources import BadSecret, is_set, read_secret
from libs.tls import BadCertificates, ca_file_setting

LOCK = 0x62616E6B
"""The advisory lock of a run on one service's history, so that two runs cannot interleave."""
LOCK_TIMEOUT = "2s"
"""How long a revision waits for the lock of a table: services that need the table meanwhile wait behind it."""
LOCK_ATTEMPTS = 30
LOCK_PAUSE_SECONDS = 2.0
"""Between two attempts, so that the services that wait for the table come first."""
LOCKED_OUT = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
"""Errors of a revision that services at work cause: the revision is tried again."""


_TAKE = text("SELECT pg_try_advisory_lock(:lock, hashtext(:service))")


def services_with_migrations() -> list[str]:
    root = Path(str(files("services")))
    return sorted(path.parent.parent.name for path in root.glob("*/migrations/versions"))


def owner_variable(service: str) -> str:
    """The environment variable with the database URL of the owner of the service's schema."""
    return f"BANKSIDE_{_prefix(service)}_OWNER_DATABASE_URL"


def _prefix(service: str) -> str:
    return service.removeprefix("provider_").upper()


async def migrate(
    service: str, url: str, revision: str = "head", *, ca_file: str | None = None
) -> str | None:
    """Bring the service's schema to a revision, the newest by default.

    Args:
        url: of the schema's owner.
        ca_file: as in `open_database`.

    Returns:
        The revision at which a later release left the schema, which then stays as it is; None otherwise.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "alembic"))
    config.set_main_option(
        "version_locations", str(Path(str(files("services"))) / service / "migrations" / "versions")
    )
    config.set_main_option("path_separator", "newline")
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=pool.NullPool,
        connect_args={
            **connect_arguments(url, ca_file),
            "timeout": 10,
            # An index of a large table may take its time, and `guard` is idle until all revisions are made.
            "server_settings": {
                **KEEPALIVE,
                "lock_timeout": LOCK_TIMEOUT,
                "statement_timeout": "0",
                "idle_in_transaction_session_timeout": "0",
            },
        },
    )

    def upgrade(connection: Connection) -> str | None:
        # A later release serves this one too: on the way back there is nothing to do, and Alembic would fail.
        later = _later_revision(connection, ScriptDirectory.from_config(config))
        if later is None:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
        return later

    async def attempt() -> str | None:
        async with engine.connect() as connection:
            later = await connection.run_sync(upgrade)
            await connection.commit()
        return later

    try:
        async with engine.connect() as guard:
            # Without a transaction, for whose snapshot an index that is built concurrently would wait.
            await guard.execution_options(isolation_level="AUTOCOMMIT")
            await guard.execute(text("SET lock_timeout = 0"))
            # Nor with a statement that waits: it has a snapshot, and the index and it would wait for each other.
            while True:
                taken = await guard.execute(_TAKE, {"lock": LOCK, "service": service})
                if taken.scalar_one():
                    break
                await asyncio.sleep(LOCK_PAUSE_SECONDS)
            for _ in range(LOCK_ATTEMPTS - 1):
                try:
                    return await attempt()
                except DBAPIError as error:
                    if not isinstance(error.driver_exception, LOCKED_OUT):
                        raise
                await asyncio.sleep(LOCK_PAUSE_SECONDS)
            return await attempt()
    finally:
        await engine.dispose()


async def migrate_all() -> int:
    """The exit code."""
    services = services_with_migrations()
    missing = [owner_variable(s) for s in services if not is_set(owner_variable(s))]
    if missing:
        print(f"migrate: set {', '.join(missing)}.", file=sys.stderr)
        return 78
    for service in services:
        try:
            url = read_secret(owner_variable(service)) or ""
            later = await migrate(
                service, url, ca_file=ca_file_setting("DATABASE", _prefix(service))
            )
        except BadSecret as error:
            print(f"migrate: {error}", file=sys.stderr)
            return 78
        except BadDatabaseUrl as error:
            print(f"migrate: set {owner_variable(service)}: {error}.", file=sys.stderr)
            return 78
        except BadCertificates as error:
            print(f"migrate: set BANKSIDE_DATABASE_CA_FILE: {error}.", file=sys.stderr)
            return 78
        except (OSError, TimeoutError, DBAPIError) as error:
            print(f"migrate: {service}: {_reason(service, error)}", file=sys.stderr)
            return 1
        if later is None:
            print(f"migrate: {service} is up to date")
        else:
            print(
                f"migrate: {service} has the schema of a later release (revision {later}), which stays as it is"
            )
    return 0


def _later_revision(connection: Connection, scripts: ScriptDirectory) -> str | None:
    """The recorded revision, if it follows all that this release has: revisions are numbers of four digits."""
    recorded = MigrationContext.configure(connection).get_current_revision()
    connection.rollback()  # Alembic begins transactions of its own, one for each revision.
    newest = scripts.get_current_head()
    return recorded if recorded and newest and recorded > newest else None


def _reason(service: str, error: Exception) -> str:
    if isinstance(error, DBAPIError) and isinstance(
        error.driver_exception, asyncpg.LockNotAvailableError
    ):
        return (
            "A transaction that goes on for minutes holds a lock on a table. Find it in pg_stat_activity, let it end,"
            " and run this again."
        )
    if isinstance(error, DBAPIError) and isinstance(
        error.driver_exception, asyncpg.InvalidAuthorizationSpecificationError
    ):
        return (
            f"PostgreSQL refuses the login of {owner_variable(service)}: run deploy/postgres/schemas.sql, which makes"
            ' the owners and sets their passwords ("Upgrading" in deploy/README.md).'
        )
    reason = getattr(error, "orig", error)
    return f"{type(reason).__name__}: {reason}"


if __name__ == "__main__":
    sys.exit(asyncio.run(migrate_all()))
