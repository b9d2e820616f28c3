"""Deleting saga steps past their retention."""

from __future__ import annotations

from typing import NoReturn

from libs.handling.periodic import repeat
from libs.persistence.engine import Database
from services.onboarding.repository import steps

PAUSE_SECONDS = 60.0


async def keep_house(database: Database, *, step_days: int) -> NoReturn:
    """Purge saga steps that are older than `step_days`, batch by batch, for ever."""

    async def purge() -> None:
        purged = steps.PURGE_BATCH
        while purged == steps.PURGE_BATCH:
            async with database.transaction() as connection:
                purged = await steps.purge(connection, days=step_days)

    await repeat("housekeeping", purge, PAUSE_SECONDS)
