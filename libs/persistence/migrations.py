"""Runs every service's Alembic history, each as the service's own login: `python -m libs.persistence.migrations`.

A history is the folder `services/<name>/migrations/versions`. Revisions only go forward: a mistake is mended by the
next one.
"""

from __future__ import annotations

import asyncio
import sys
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, pool, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from libs.persistence.keepalive import KEEPALIVE
from libs.secret_files import BadSecret, is_set, read_secret

LOCK = 0x62616E6B
"""The advisory lock of a run on one service's history, so that two runs cannot interleave."""


def services_with_migrations() -> list[str]:
    root = Path(str(files("services")))
    return sorted(path.parent.parent.name for path in root.glob("*/migrations/versions"))


def database_variable(service: str) -> str:
    """Name of the environment variable that holds the service's database URL."""
    prefix = "SANDBOX" if service == "provider_sandbox" else service.upper()
    return f"BANKSIDE_{prefix}_DATABASE_URL"


async def migrate(service: str, url: str) -> None:
    """Bring the service's schema to its newest revision."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "alembic"))
    config.set_main_option(
        "version_locations", str(Path(str(files("services"))) / service / "migrations" / "versions")
    )
    config.set_main_option("path_separator", "newline")
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+asyncpg"),
        poolclass=pool.NullPool,
        connect_args={"timeout": 10, "server_settings": KEEPALIVE},
    )

    def upgrade(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

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


async def _migrate_all() -> int:
    services = services_with_migrations()
    missing = [database_variable(s) for s in services if not is_set(database_variable(s))]
    if missing:
        print(f"migrate: set {', '.join(missing)}.", file=sys.stderr)
        return 78
    for service in services:
        try:
            await migrate(service, read_secret(database_variable(service)) or "")
        except BadSecret as error:
            print(f"migrate: {error}", file=sys.stderr)
            return 78
        except (OSError, TimeoutError, DBAPIError) as error:
            reason = getattr(error, "orig", error)
            print(f"migrate: {service}: {type(reason).__name__}: {reason}", file=sys.stderr)
            return 1
        print(f"migrate: {service} is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_migrate_all()))
