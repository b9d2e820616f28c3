"""Deleting saga steps past their retention."""

from __future__ import annotations

from typing import NoReturn

from libs.handling.periodic import repeat
from libs.persistence.engine import Database
from services.onboarding.repository import step_retention

PAUSE_SECONDS = 60.0


async def keep_house(database: Database, *, step_days: int) -> NoReturn:
    """Purge saga steps that are older than `step_days`, batch by batch, for ever."""

    async def purge() -> None:
        # Each round begins anew: by then other steps may go.
        last: step_retention.StepPlace | None = step_retention.FIRST
        while last is not None:
            async with database.transaction() as connection:
                purged = await step_retention.purge(connection, days=step_days, after=last)
            last = purged.last

    await repeat("housekeeping", purge, PAUSE_SECONDS)
