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
from sqlalchemy import Connection, pool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from libs.persistence.addressing import BadDatabaseUrl, connect_arguments
from libs.persistence.keepalive import KEEPALIVE
from libs.secret_sources import BadSecret, is_set, read_secret
from libs.tls import BadCertificates, ca_file_setting

LOCK = 0x62616E6B
"""The advisory lock of a run on one service's history, so that two runs cannot interleave."""


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
) -> None:
    """Bring the service's schema to a revision, the newest by default.

    Args:
        url: of the schema's owner.
        ca_file: as in `open_database`.
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
            # An index of a large table may take its time, and the guard waits for all revisions.
            "server_settings": {
                **KEEPALIVE,
                "statement_timeout": "0",
                "idle_in_transaction_session_timeout": "0",
            },
        },
    )

    def upgrade(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    try:
        async with engine.connect() as guard, engine.connect() as connection:
            await guard.execute(
                text("SELECT pg_advisory_lock(:lock, hashtext(:service))"),
                {"lock": LOCK, "service": service},
            )
            await connection.run_sync(upgrade)
            await connection.commit()
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
            await migrate(service, url, ca_file=ca_file_setting("DATABASE", _prefix(service)))
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
        print(f"migrate: {service} is up to date")
    return 0


def _reason(service: str, error: Exception) -> str:
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
