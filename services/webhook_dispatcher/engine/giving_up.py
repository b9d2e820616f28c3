"""A subscription whose endpoint is dead, or wants nothing any more, becomes unavailable.

What happens from then on is held, so that `recover` has it. An event tells the subscriber's other subscriptions.

Whoever records attempts waits only for what has to be at once: that an endpoint which answered 410 is sent nothing
more. To look whether one is dead, and to hold what is pending, which may be millions, are tasks of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import NoReturn
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.engine import Database
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.engine.days import Days
from services.webhook_dispatcher.engine.death import FAILED_EVENTS, is_dead, may_be_dead
from services.webhook_dispatcher.engine.patience import until_done
from services.webhook_dispatcher.engine.rules import Rules
from services.webhook_dispatcher.engine.schedule import whole_seconds
from services.webhook_dispatcher.metrics import MADE_UNAVAILABLE
from services.webhook_dispatcher.repository import dead_endpoints, deliveries, healths, recording
from services.webhook_dispatcher.repository.healths import Health
from services.webhook_dispatcher.views import subscription_event

BATCH = 5000
LOOK_SECONDS = 60.0
"""Between two looks at the same endpoint, or more."""

Change = Callable[[AsyncConnection, UUID, int], Awaitable[int]]


class GivingUp:
    """
    Args:
        wake: said when the event that tells of it is due.
    """

    def __init__(
        self,
        database: Database,
        days: Days,
        rules: Rules,
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._days = days
        self._whole_schedule = timedelta(seconds=whole_seconds(rules.retry_seconds))
        self._clock = clock
        self._wake = wake
        self._suspects: set[UUID] = set()
        self._any_suspect = asyncio.Event()
        self._any_to_hold = asyncio.Event()
        self._log = structlog.get_logger("webhooks")

    async def consider(self, subscription_id: UUID, health: Health, *, wants_nothing: bool) -> None:
        """Make the subscription unavailable: at once if it `wants_nothing`; if the rule says so, soon.

        Nothing happens when the endpoint is not the one any more whose health this is.
        """
        if wants_nothing:
            await self._give_up(subscription_id, health, wants_nothing=True)
        else:
            self._suspects.add(subscription_id)
            self._any_suspect.set()

    async def look_for_ever(self) -> NoReturn:
        """See whether endpoints are dead: at each once in `LOOK_SECONDS` at most, however much fails there."""
        while True:
            await self._any_suspect.wait()
            await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        suspects, self._suspects = self._suspects, set()
        self._any_suspect.clear()
        healths = await until_done("look", lambda: self._healths(suspects))
        for subscription_id, health in healths.items():
            if may_be_dead(health, self._clock()):
                await self._give_up(subscription_id, health, wants_nothing=False)

    async def _healths(self, subscriptions: Collection[UUID]) -> dict[UUID, Health]:
        async with self._database.driver() as connection:
            return await healths.read(connection, subscriptions)

    async def hold_for_ever(self) -> NoReturn:
        """Hold what is pending of those that became unavailable."""
        while True:
            await self._any_to_hold.wait()
            self._any_to_hold.clear()
            await until_done("hold", self.go_on)

    async def _give_up(self, subscription_id: UUID, health: Health, *, wants_nothing: bool) -> None:
        if await until_done(
            "unavailable",
            lambda: self._make_unavailable(subscription_id, health, wants_nothing=wants_nothing),
        ):
            self._log.warning("subscription_unavailable", subscription=str(subscription_id))
            MADE_UNAVAILABLE.inc()
            self._wake()
            self._any_to_hold.set()

    async def _make_unavailable(
        self, subscription_id: UUID, health: Health, *, wants_nothing: bool
    ) -> bool:
        now = self._clock()
        await self._days.ensure("event", {datetime.now(UTC).date()})
        async with self._database.transaction() as connection:
            if not wants_nothing:
                standing = await dead_endpoints.standing(
                    connection,
                    subscription_id,
                    due_before=now - self._whole_schedule,
                    most=FAILED_EVENTS,
                )
                if not is_dead(health, standing, now):
                    return False
            record = await dead_endpoints.make_unavailable(
                connection, subscription_id, health.generation, now
            )
            if record is None:
                return False
            # Recording waits for events that still go by the status before: their deliveries are held with the others.
            event = subscription_event("unavailable", record, record.sequence)
            await recording.record(connection, event)
            crash_point("webhook_dispatcher.giving_up")
        crash_point("webhook_dispatcher.given_up")
        return True

    async def go_on(self) -> None:
        """Hold what is pending of unavailable subscriptions, and drop what is there of deleted ones, which somebody may
        have left who died or gave up while doing so. What is in flight is not tried again if it fails.
        """
        async with self._database.transaction() as connection:
            left = await dead_endpoints.left_over(connection)
        for subscription_id, status in left:
            change = deliveries.hold if status == "unavailable" else deliveries.drop
            await self._all(subscription_id, status, change)

    async def _all(self, subscription_id: UUID, status: str, change: Change) -> None:
        while (
            await until_done(status, lambda: self._some(subscription_id, status, change)) == BATCH
        ):
            pass

    async def _some(self, subscription_id: UUID, status: str, change: Change) -> int:
        async with self._database.transaction() as connection:
            if not await deliveries.keeps_status(connection, subscription_id, status):
                return 0
            return await change(connection, subscription_id, BATCH)
