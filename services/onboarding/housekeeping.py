"""Deleting saga steps past their retention."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import structlog

from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from services.onboarding.repository import steps

PAUSE_SECONDS = 60.0


async def keep_house(database: Database, *, step_days: int) -> NoReturn:
    """Purge saga steps that are older than so many days, batch by batch, for ever."""
    log = structlog.get_logger("housekeeping")
    while True:
        try:
            async with database.transaction() as connection:
                purged = await steps.purge(connection, days=step_days)
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("database_away")
            purged = 0
        if purged < steps.PURGE_BATCH:
            await asyncio.sleep(PAUSE_SECONDS)
