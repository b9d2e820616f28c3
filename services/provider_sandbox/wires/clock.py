"""Wires are settled when their time has come. It is written in their rows, so a restart changes nothing."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import structlog

from libs.runtime.crash import crash_point
from services.provider_sandbox.database import UNAVAILABLE, Connection, Database
from services.provider_sandbox.wires.settling import settle

AT_ONCE = 200
POLL_SECONDS = 0.1
PAUSE_SECONDS = 1.0
"""Before another try, when the database was out of reach."""

log = structlog.get_logger("provider_sandbox")

_IS_ANY_DUE = """
    SELECT EXISTS (SELECT FROM wire WHERE state = 'submitted' AND due_at <= clock_timestamp())
"""
_DUE = """
    SELECT * FROM wire WHERE state = 'submitted' AND due_at <= clock_timestamp()
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
"""


async def settle_due(connection: Connection) -> int:
    """Settle wires that are due, without those that another transaction has locked; how many there were."""
    wires = await connection.fetch(_DUE, AT_ONCE)
    if wires:
        await settle(connection, wires)
    return len(wires)


async def _settle(database: Database) -> int:
    # One statement, ten times a second, rather than a transaction.
    async with database.reading() as connection:
        if not await connection.fetchval(_IS_ANY_DUE):
            return 0
    async with database.transaction() as connection:
        settled = await settle_due(connection)
        if settled:
            crash_point("sandbox.wires_unsettled")
    if settled:
        crash_point("sandbox.wires_settled")
    return settled


async def run(database: Database) -> NoReturn:
    """Settle due wires, for ever."""
    while True:
        try:
            settled = await _settle(database)
        except UNAVAILABLE as error:
            log.warning("wires_not_settled", error=type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            if settled < AT_ONCE:
                await asyncio.sleep(POLL_SECONDS)
