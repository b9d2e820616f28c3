"""Dropping the days beyond the retention: of events with their deliveries, and of attempts.

Days are over by the database's clock and by this process's, so that neither of them drops a day alone
(`libs.persistence.earlier_clock`). A held delivery is dropped with its event. A pending delivery is still being tried,
as after a resend just before the retention was over: all events of that day stay until it is over, but for no longer
than a retry schedule may last. Then it is dropped with them, since a subscription that is disabled and made active
again and again would have it pending for ever.
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
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.schedule import longest_days
from services.webhook_dispatcher.metrics import EVENT_DAYS_KEPT
from services.webhook_dispatcher.repository import claims, partitions, retention
from services.webhook_dispatcher.repository.partitions import Partitioned, Partitions

DROP_BATCH = 5000
LOOK_AGAIN_SECONDS = 600.0
"""The pause after a day of events could not be dropped: finding out whether it can reads all deliveries."""
SKEW = timedelta(hours=1)
"""A delivery is looked at once more when its id may have been made up to this long before the look at all of them
began: ids of deliveries that are sent again go by the clocks of processes.
"""


class Retention:
    """Drops the events and attempts that are beyond the retention."""

    def __init__(self, database: Database, known: Partitions, settings: DeliverySettings) -> None:
        self._database = database
        self._known = known
        self._kept = settings.retention
        self._tried = timedelta(days=longest_days(settings.retry_seconds))
        self._events_not_before = 0.0
        self._log = structlog.get_logger("webhooks")

    async def drop(self, term: Term) -> None:
        """Drop the days that are beyond the retention now, under the lease: in transactions fenced by `term`."""
        await self.drop_before(await self._known.earlier_today() - self._kept, term)
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
        async with self._database.transaction() as connection:
            added_since = await retention.first_id_of(connection, SKEW)
        with_deliveries = await self._drop_deliveries(first_kept, term)
        kept = [
            day
            for day in outdated
            if day in with_deliveries or not await self._drop("event", day, term, added_since)
        ]
        if kept:
            self._events_not_before = time.monotonic() + LOOK_AGAIN_SECONDS
            EVENT_DAYS_KEPT.inc(len(kept))
            self._log.warning("event_days_kept", days=[day.isoformat() for day in kept])

    async def _drop_deliveries(self, first_kept: date, term: Term) -> set[date]:
        """Drop deliveries that are held, or were tried for long enough. Returns the days before `first_kept` that have
        other deliveries.
        """
        held = pending = 0
        with_deliveries: set[date] = set()
        last: UUID | None = claims.FIRST
        while last is not None:
            async with self._database.transaction() as connection:
                await fence(connection, term)
                batch = await retention.drop_deliveries(
                    connection,
                    first_kept,
                    pending_before=first_kept - self._tried,
                    after=last,
                    most=DROP_BATCH,
                )
            held += batch.held
            pending += batch.pending
            with_deliveries |= batch.days_left
            last = batch.last
        if held:
            self._log.warning("held_deliveries_dropped", count=held)
        if pending:
            self._log.warning("pending_deliveries_dropped", count=pending)
        return with_deliveries

    async def _drop(
        self, table: Partitioned, day: date, term: Term, added_since: UUID = claims.FIRST
    ) -> bool:
        try:
            async with self._database.transaction() as connection:
                await fence(connection, term)
                if not await partitions.drop(connection, table, day, added_since=added_since):
                    return False
        except DBAPIError as error:
            if not isinstance(
                error.driver_exception, asyncpg.LockNotAvailableError | asyncpg.QueryCanceledError
            ):
                raise
            self._log.warning("partition_in_use", table=table, day=day.isoformat())
            return False
        self._log.info("partition_dropped", table=table, day=day.isoformat())
        return True
