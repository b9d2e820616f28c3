"""The inbox of a service over time: finished commands are purged, the backlog is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

from libs.handling.metrics import (
    COMMANDS_OPEN,
    COMMANDS_PARKED,
    LONGEST_PARKED_SECONDS,
    OLDEST_COMMAND_SECONDS,
)
from libs.handling.periodic import repeat
from libs.persistence import inbox_housekeeping
from libs.persistence.engine import Database

HOUSEKEEPING_SECONDS = 15.0


async def keep_house(database: Database, caught_up_to: Callable[[], float | None]) -> NoReturn:
    """Purge finished commands whose retention is over and measure the backlog, for ever.

    Args:
        caught_up_to: every command that was sent before this time (Unix seconds) has been delivered; None: not known.
            A repetition that waits in the queue for longer than the retention, since no process took it, still finds
            the command that it repeats.
    """
    delivered_before: float | None = None

    async def purge_and_measure() -> None:
        nonlocal delivered_before
        # As it was one turn ago: what had been delivered then is recorded by now.
        recorded_before, delivered_before = delivered_before, caught_up_to()
        if recorded_before is not None:
            await _purge(database, timedelta(seconds=max(0.0, time.time() - recorded_before)))
        await _measure(database)

    await repeat("commands", purge_and_measure, HOUSEKEEPING_SECONDS)


async def _purge(database: Database, behind: timedelta) -> None:
    purged = inbox_housekeeping.PURGE_BATCH
    while purged == inbox_housekeeping.PURGE_BATCH:
        async with database.transaction() as connection:
            purged = await inbox_housekeeping.purge(connection, behind=behind)


async def _measure(database: Database) -> None:
    async with database.transaction() as connection:
        backlog = await inbox_housekeeping.measure_backlog(connection)
    COMMANDS_OPEN.set(backlog.open)
    OLDEST_COMMAND_SECONDS.set(backlog.oldest_open_seconds)
    COMMANDS_PARKED.set(backlog.parked)
    LONGEST_PARKED_SECONDS.set(backlog.longest_parked_seconds)
