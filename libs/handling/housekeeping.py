"""The inbox of a service over time: finished commands are purged, the backlog is measured."""

from __future__ import annotations

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


async def keep_house(database: Database) -> NoReturn:
    """Purge finished commands whose retention is over and measure the backlog, for ever."""
    await repeat("commands", lambda: _purge_and_measure(database), HOUSEKEEPING_SECONDS)


async def _purge_and_measure(database: Database) -> None:
    while await _purge(database) == inbox_housekeeping.PURGE_BATCH:
        pass
    async with database.transaction() as connection:
        backlog = await inbox_housekeeping.measure_backlog(connection)
    COMMANDS_OPEN.set(backlog.open)
    OLDEST_COMMAND_SECONDS.set(backlog.oldest_open_seconds)
    COMMANDS_PARKED.set(backlog.parked)
    LONGEST_PARKED_SECONDS.set(backlog.longest_parked_seconds)


async def _purge(database: Database) -> int:
    async with database.transaction() as connection:
        return await inbox_housekeeping.purge(connection)
