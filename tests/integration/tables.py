"""Reading and changing tables beneath what is tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from libs.persistence.engine import Database


async def rows(database: Database, query: str, **values: Any) -> Sequence[Any]:
    async with database.transaction() as connection:
        return (await connection.execute(text(query), values)).all()


async def execute(database: Database, *statements: str) -> None:
    async with database.transaction() as connection:
        for statement in statements:
            await connection.execute(text(statement))
