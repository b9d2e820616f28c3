"""Reading and changing tables beneath what is tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
from sqlalchemy import text

from libs.persistence import audited_commands, leased_writes
from libs.persistence.engine import Database
from libs.persistence.inbox import Leased
from libs.persistence.leased_writes import LeasedValue
from tests.support.infrastructure import Environment


async def rows(database: Database, query: str, **values: Any) -> Sequence[Any]:
    async with database.transaction() as connection:
        return (await connection.execute(text(query), values)).all()


async def execute(database: Database, *statements: str) -> None:
    async with database.transaction() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def define(environment: Environment, service: str, *statements: str) -> None:
    """As the owner of the service's schema, as migrations do."""
    connection = await asyncpg.connect(environment.database_urls[f"{service}_owner"])
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def audit_finished(database: Database) -> None:
    """Note that the final commands are in the audit, as their service does within seconds: they may be purged."""
    async with database.transaction() as connection:
        await audited_commands.mark(connection, await audited_commands.take(connection))


async def finish(database: Database, command: Leased, reply: bytes = b"{}") -> None:
    """As its driver does."""
    async with database.driver() as connection:
        assert await leased_writes.finish(connection, [LeasedValue(command, reply)])
