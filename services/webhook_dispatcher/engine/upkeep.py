"""What has to be done now and then: expired leases, partitions made ahead and dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NoReturn
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.persistence.cursor import ELECTION_SECONDS, leadership
from libs.persistence.engine import Database, is_away
from services.webhook_dispatcher.engine.days import Days
from services.webhook_dispatcher.engine.giving_up import GivingUp
from services.webhook_dispatcher.engine.patience import until_done
from services.webhook_dispatcher.metrics import LEASES_EXPIRED
from services.webhook_dispatcher.repository import claims, partitions
from services.webhook_dispatcher.repository.partitions import Partitioned

SWEEP_SECONDS = 1.0
UPKEEP_SECONDS = 60.0
DAYS_AHEAD = 2
DROP_BATCH = 5000

TABLES: tuple[Partitioned, ...] = ("event", "attempt")


class Upkeep:
    """
    Args:
        retention: events and attempts of the days before are dropped, and with them the deliveries that are left.
        wake: said when something is due again.
    """

    def __init__(
        self,
        database: Database,
        days: Days,
        giving_up: GivingUp,
        retention: timedelta,
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._days = days
        self._giving_up = giving_up
        self._retention = retention
        self._clock = clock
        self._wake = wake
        self._log = structlog.get_logger("webhooks")

    async def sweep_for_ever(self) -> NoReturn:
        """Free the leases of processes that died, or were held up."""
        while True:
            if freed := await until_done("sweep", self.sweep):
                self._log.warning("leases_expired", count=freed)
                LEASES_EXPIRED.inc(freed)
                self._wake()
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        async with self._database.driver() as connection:
            return await claims.free_expired(connection)

    async def keep_for_ever(self) -> NoReturn:
        """Of several processes one does this."""
        while True:
            try:
                async with leadership(self._database, "webhook-upkeep") as leading:
                    while True:
                        await self.keep()
                        await asyncio.sleep(UPKEEP_SECONDS)
                        await leading.execute(text("SELECT 1"))
            except Exception as error:
                if not is_away(error):
                    raise
                self._log.warning("upkeep_waits", error=type(error).__name__)
            await asyncio.sleep(ELECTION_SECONDS)

    async def keep(self) -> None:
        """Everything once."""
        await self.make_ahead()
        await self._giving_up.go_on()
        first_kept = self._clock().date() - self._retention
        await self._drop_events(first_kept)
        await self._drop_days("attempt", first_kept)

    async def make_ahead(self) -> None:
        """Partitions for today and the days that follow."""
        today = self._clock().date()
        for table in TABLES:
            await self._days.ensure(
                table, (today + timedelta(days=n) for n in range(DAYS_AHEAD + 1))
            )

    async def _drop_events(self, first_kept: date) -> None:
        """Deliveries of events go before their events: held ones, and those behind a breaker that never opened."""
        async with self._database.transaction() as connection:
            days = await partitions.days(connection, "event")
        if not any(day < first_kept for day in days):
            return
        dropped = 0
        last: UUID | None = claims.FIRST
        while last is not None:
            async with self._database.transaction() as connection:
                count, last = await partitions.drop_deliveries(
                    connection, first_kept, after=last, most=DROP_BATCH
                )
            dropped += count
        if dropped:
            self._log.warning("deliveries_kept_no_longer", count=dropped)
        await self._drop_days("event", first_kept)

    async def _drop_days(self, table: Partitioned, first_kept: date) -> None:
        async with self._database.transaction() as connection:
            days = await partitions.days(connection, table)
        for day in sorted(day for day in days if day < first_kept):
            try:
                async with self._database.transaction() as connection:
                    await partitions.drop(connection, table, day)
            except DBAPIError as error:
                if not isinstance(
                    getattr(error.orig, "__cause__", None), asyncpg.LockNotAvailableError
                ):
                    raise
                self._log.warning("partition_in_use", table=table, day=day.isoformat())
                return
            self._log.info("partition_dropped", table=table, day=day.isoformat())
        self._days.forget()
