"""Each service's `tables.py` says what its migrations make: columns, types, defaults, keys, indexes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table
from sqlalchemy.engine import make_url

from libs.persistence.async_engine import create_async_engine
from libs.persistence.migrations import services_with_migrations
from tests.support.own_servers import OwnPostgres

SERVICES = services_with_migrations()
COMMENTS = ("modify_comment", "add_table_comment", "remove_table_comment")
"""They stand in the migrations alone."""
ROOT = Path(__file__).parents[2]
SIMULATED = "provider_sandbox"
"""Its README describes what it serves instead."""


async def differences(url: str, metadata: MetaData) -> list[Any]:
    """What a migration would have to do to come from the database to `metadata`."""

    def compare(connection: Connection) -> list[Any]:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_object": is_table_of_ours,
            },
        )
        return [
            change
            for found in compare_metadata(context, metadata)
            for change in (found if isinstance(found, list) else [found])
            if change[0] not in COMMENTS
        ]

    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(compare)
    finally:
        await engine.dispose()


def is_table_of_ours(thing: Any, name: str | None, kind: str, *_: object) -> bool:
    """Alembic's own table and partitions, which come and go, are not declared."""
    if kind != "table":
        return True
    assert name is not None
    return name != "alembic_version" and not name.startswith("nonces_")


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("service", SERVICES)
async def test_tables_are_what_the_migrations_make(postgres: OwnPostgres, service: str) -> None:
    metadata: MetaData = import_module(f"services.{service}.tables").metadata

    assert await differences(postgres.database_urls[f"{service}_owner"], metadata) == []


@pytest.mark.asyncio(loop_scope="session")
async def test_a_table_that_is_not_declared_is_a_difference(postgres: OwnPostgres) -> None:
    [(change, table)] = await differences(
        postgres.database_urls["gateway_owner"], without("rates", "gateway")
    )

    assert isinstance(table, Table)
    assert (change, table.name) == ("remove_table", "rates")


@pytest.mark.parametrize("service", [name for name in SERVICES if name != SIMULATED])
def test_the_readme_of_a_service_names_every_table_that_it_owns(service: str) -> None:
    readme = (ROOT / "services" / service / "README.md").read_text()
    [owned] = [part for part in readme.split("\n\n") if part.startswith("**Owns**")]

    tables = import_module(f"services.{service}.tables").metadata.tables

    assert [name for name in tables if f"`{name}`" not in owned] == []


def without(name: str, service: str) -> MetaData:
    """A copy of the service's metadata that lacks a table."""
    copied = MetaData()
    for table in import_module(f"services.{service}.tables").metadata.tables.values():
        if table.name != name:
            table.to_metadata(copied)
    return copied
