"""The body of an open command is sealed in every table. All other places: `tests/e2e/test_secrecy.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from tests.integration.onboarding.desk import (
    Desk,
    application,
    business,
    tax_number,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def everything_in_the_schema(desk: Desk) -> str:
    """Every row of every table of onboarding, as text; bytes as text too."""
    connection: Any = await asyncpg.connect(desk.stack.environment.database_urls["onboarding"])
    try:
        names = await connection.fetch(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        )
        found = []
        for (name,) in names:
            for row in await connection.fetch(f'SELECT * FROM "{name}"'):
                values = (
                    v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v)
                    for v in row.values()
                )
                found.append(f"{name}: {' '.join(values)}")
        return "\n".join(found)
    finally:
        await connection.close()


async def test_an_open_commands_body_is_sealed_in_the_inbox(desk: Desk) -> None:
    ein = tax_number()
    await desk.fault("core", "*", "error")

    waiting = asyncio.create_task(
        desk.onboard(application(business=business(ein=ein)), wait_seconds=5)
    )
    await asyncio.wait({waiting})

    rows = await everything_in_the_schema(desk)
    assert "onboarding.onboard_customer" in rows
    assert ein not in rows
    assert waiting.exception() is not None
    await desk.no_faults()
    await desk.until_quiet()
