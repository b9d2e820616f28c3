"""The inbox of a service over time: finished commands are purged, the backlog is measured, and commands that a setback
of the database's clock has put off are made due.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

from libs.handling.awaiting import AWAITED_RETRIES
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
LONGEST_PAUSE_SECONDS = AWAITED_RETRIES.longest_seconds * (1 + AWAITED_RETRIES.jitter)
PUT_OFF = timedelta(seconds=2 * LONGEST_PAUSE_SECONDS)
"""Twice the longest pause: the clock may be corrected by a little, and another release may pause for longer."""


async def keep_house(
    database: Database, caught_up_to: Callable[[], float | None], *, hastens: bool
) -> NoReturn:
    """Purge finished commands whose retention is over, make due what a setback of the database's clock may have put
    off, and measure the backlog, for ever.

    Args:
        caught_up_to: every command that was sent before this time (Unix seconds) has been delivered; None: not known,
            as while taken commands go back to the queue, and then nothing is purged. A repetition that waits in the
            queue for longer than the retention, since no process took it, still finds the command that it repeats.
        hastens: whether to make commands due that are put off. False where `clock_setbacks` does that: there a command
            that is due later than after any pause is held by an operator, perhaps by the setting of another process.
    """
    delivered_before: float | None = None

    async def keep() -> None:
        nonlocal delivered_before
        # The value of one turn ago: what had been delivered by then is recorded by now.
        recorded_before, delivered_before = delivered_before, caught_up_to()
        if recorded_before is not None and delivered_before is not None:
            # The earlier of both, as commands may have gone back to the queue between the turns.
            behind = time.time() - min(recorded_before, delivered_before)
            await _purge(database, timedelta(seconds=max(0.0, behind)))
        if hastens:
            await _hasten(database)
        await _measure(database)

    await repeat("commands", keep, HOUSEKEEPING_SECONDS)


async def _purge(database: Database, behind: timedelta) -> None:
    purged = inbox_housekeeping.PURGE_BATCH
    while purged == inbox_housekeeping.PURGE_BATCH:
        async with database.transaction() as connection:
            purged = await inbox_housekeeping.purge(connection, behind=behind)


async def _hasten(database: Database) -> None:
    hastened = inbox_housekeeping.HASTENED_AT_ONCE
    while hastened == inbox_housekeeping.HASTENED_AT_ONCE:
        async with database.transaction() as connection:
            hastened = await inbox_housekeeping.hasten(connection, ahead=PUT_OFF)


async def _measure(database: Database) -> None:
    async with database.transaction() as connection:
        backlog = await inbox_housekeeping.measure_backlog(connection)
    COMMANDS_OPEN.set(backlog.open)
    OLDEST_COMMAND_SECONDS.set(backlog.oldest_open_seconds)
    COMMANDS_PARKED.set(backlog.parked)
    LONGEST_PARKED_SECONDS.set(backlog.longest_parked_seconds)
