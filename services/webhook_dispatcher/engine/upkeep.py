"""Periodic tasks: releasing expired leases; making partitions ahead of time, and dropping old ones; finding endpoints
that have failed for days and get no further attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

import structlog

from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leadership import (
    ELECTION_SECONDS,
    LeadershipLost,
    leadership,
)
from libs.persistence.retries import until_available
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.metrics import LEASES_EXPIRED
from services.webhook_dispatcher.repository import claims
from services.webhook_dispatcher.repository.partitions import Partitioned, Partitions

LEASE = "webhook-upkeep"
LEASES_SECONDS = 1.0
UPKEEP_SECONDS = 60.0
DAYS_AHEAD = 2

TABLES: tuple[Partitioned, ...] = ("event", "attempt")


class Upkeep:
    """Runs the periodic tasks.

    Args:
        wake: called when deliveries are due again.
    """

    def __init__(
        self,
        database: Database,
        partitions: Partitions,
        unavailability: Unavailability,
        retention: Retention,
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._partitions = partitions
        self._unavailability = unavailability
        self._retention = retention
        self._wake = wake
        self._log = structlog.get_logger("webhooks")

    async def free_leases_for_ever(self) -> NoReturn:
        """Release the claims of processes that died or stalled."""
        while True:
            if freed := await until_available("free leases", self.free_leases):
                self._log.warning("leases_expired", count=freed)
                LEASES_EXPIRED.inc(freed)
                self._wake()
            await asyncio.sleep(LEASES_SECONDS)

    async def free_leases(self) -> int:
        async with self._database.driver() as connection:
            return await claims.free_expired(connection)

    async def keep_for_ever(self) -> NoReturn:
        while True:
            try:
                await self.keep()
                await asyncio.sleep(UPKEEP_SECONDS)
            except Exception as error:
                if not isinstance(error, LeadershipLost) and not is_away(error):
                    raise
                self._log.warning("upkeep_waits", error=type(error).__name__)
                await asyncio.sleep(ELECTION_SECONDS)

    async def keep(self) -> None:
        """Do every task once, in one process at a time.

        Partitions are dropped in transactions that are fenced by the term of the lease: a process that froze drops
        nothing after it lost the lease. The other tasks need no fence: each decides by what it reads in its own
        transaction.
        """
        async with leadership(self._database, LEASE) as term:
            await self.make_ahead()
            await self._retention.drop(term)
            await self._unavailability.suspect_quiet()
            # The last: of millions of deliveries it takes minutes.
            await self._unavailability.change_strays()

    async def make_ahead(self) -> None:
        """Make the partitions of today and of the next `DAYS_AHEAD` days."""
        today = await self._partitions.today()
        for table in TABLES:
            await self._partitions.ensure(
                table, (today + timedelta(days=n) for n in range(DAYS_AHEAD + 1))
            )
