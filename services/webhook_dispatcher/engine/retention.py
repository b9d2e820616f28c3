"""What is kept no longer is dropped by days: events, attempts, and the deliveries of those events.

Days go by the database's clock, so that a process whose clock is wrong drops nothing. A delivery that is held waits
for its subscriber, and goes with its event. One that is pending is still being tried, as after a resend of an old
event: its event stays until it is over, and so do the other events of that day.
"""

from __future__ import annotations

import time
from datetime import date, timedelta
from uuid import UUID

import asyncpg
import structlog
from sqlalchemy.exc import DBAPIError

from libs.persistence.engine import Database
from libs.persistence.leadership import Term, fence
from services.webhook_dispatcher.metrics import EVENT_DAYS_KEPT
from services.webhook_dispatcher.repository import claims, partitions, retention
from services.webhook_dispatcher.repository.partitions import Partitioned, Partitions

DROP_BATCH = 5000
LOOK_AGAIN_SECONDS = 600.0
"""After a day of events could not be dropped. All deliveries are read to see whether it can."""


class Retention:
    """
    Args:
        kept: for how long; whole days.
    """

    def __init__(self, database: Database, known: Partitions, kept: timedelta) -> None:
        self._database = database
        self._known = known
        self._kept = kept
        self._events_not_before = 0.0
        self._log = structlog.get_logger("webhooks")

    async def drop(self, term: Term) -> None:
        """Drop the days that are over the retention now. Each transaction commits only while `term` lasts."""
        await self.drop_before(await self._known.today() - self._kept, term)
        await self._forget_redeliveries()

    async def drop_before(self, first_kept: date, term: Term) -> None:
        outdated = await self._outdated("event", first_kept)
        if outdated and time.monotonic() >= self._events_not_before:
            await self._drop_events(outdated, first_kept, term)
        for day in await self._outdated("attempt", first_kept):
            if not await self._drop("attempt", day, term):
                break
        self._known.forget()

    async def _forget_redeliveries(self) -> None:
        forgotten = DROP_BATCH
        while forgotten == DROP_BATCH:
            async with self._database.transaction() as connection:
                forgotten = await retention.forget_redeliveries(connection, self._kept, DROP_BATCH)

    async def _outdated(self, table: Partitioned, first_kept: date) -> list[date]:
        async with self._database.transaction() as connection:
            days = await partitions.days(connection, table)
        return sorted(day for day in days if day < first_kept)

    async def _drop_events(self, outdated: list[date], first_kept: date, term: Term) -> None:
        with_deliveries = await self._drop_held(first_kept, term)
        kept = [
            day
            for day in outdated
            if day in with_deliveries or not await self._drop("event", day, term)
        ]
        if kept:
            self._events_not_before = time.monotonic() + LOOK_AGAIN_SECONDS
            EVENT_DAYS_KEPT.inc(len(kept))
            self._log.warning("event_days_kept", days=[day.isoformat() for day in kept])

    async def _drop_held(self, first_kept: date, term: Term) -> set[date]:
        """The days before, of which there are deliveries left."""
        dropped = 0
        with_deliveries: set[date] = set()
        last: UUID | None = claims.FIRST
        while last is not None:
            async with self._database.transaction() as connection:
                await fence(connection, term)
                batch = await retention.drop_held_deliveries(
                    connection, first_kept, after=last, most=DROP_BATCH
                )
            dropped += batch.dropped
            with_deliveries |= batch.days_left
            last = batch.last
        if dropped:
            self._log.warning("deliveries_kept_no_longer", count=dropped)
        return with_deliveries

    async def _drop(self, table: Partitioned, day: date, term: Term) -> bool:
        try:
            async with self._database.transaction() as connection:
                await fence(connection, term)
                if table == "event" and await retention.has_deliveries(connection, day):
                    return False
                await partitions.drop(connection, table, day)
        except DBAPIError as error:
            if not isinstance(
                getattr(error.orig, "__cause__", None),
                asyncpg.LockNotAvailableError | asyncpg.QueryCanceledError,
            ):
                raise
            self._log.warning("partition_in_use", table=table, day=day.isoformat())
            return False
        self._log.info("partition_dropped", table=table, day=day.isoformat())
        return True
