"""The present time by the database's clock, for a process whose own clock may be wrong.

What is signed now is refused by receivers when its timestamp is some minutes off, and with the pauses of the schedule a
delivery would then be late by half an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from libs.handling.periodic import repeat, tolerating_outage
from libs.persistence.engine import Database

READ_SECONDS = 5.0

_NOW = "SELECT clock_timestamp()"


class DatabaseClock:
    """Call it for the time, which it keeps by the monotonic clock since it last read the database's.

    While the database is away it goes on from its last reading; before the first it is the process's own clock.

    Args:
        monotonic: in seconds.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._read_at = monotonic()
        self._then = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self._then + timedelta(seconds=self._monotonic() - self._read_at)

    async def read(self) -> None:
        """Set it by the database's clock, to within half of the time that the statement took."""
        async with self._database.driver() as connection:
            asked_at = self._monotonic()
            now = await connection.fetchval(_NOW)
            self._then, self._read_at = now, (asked_at + self._monotonic()) / 2

    async def start(self) -> None:
        """Read the database's clock once, if the database can be used now."""
        await tolerating_outage("database-clock", self.read)

    async def follow_for_ever(self) -> NoReturn:
        await repeat("database-clock", self.read, READ_SECONDS)
