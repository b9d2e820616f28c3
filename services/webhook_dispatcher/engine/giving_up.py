"""A subscription whose endpoint is dead, or wants nothing any more, becomes unavailable.

What happens from then on is held, so that `recover` has it. An event tells the subscriber's other subscriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence.engine import Database
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.engine.days import Days
from services.webhook_dispatcher.engine.death import FAILED_EVENTS, is_dead
from services.webhook_dispatcher.engine.patience import until_done
from services.webhook_dispatcher.engine.rules import Rules
from services.webhook_dispatcher.engine.schedule import whole_seconds
from services.webhook_dispatcher.metrics import MADE_UNAVAILABLE
from services.webhook_dispatcher.repository import deliveries, endpoints, recording
from services.webhook_dispatcher.repository.endpoints import Health
from services.webhook_dispatcher.views import subscription_event

BATCH = 5000

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
        self._log = structlog.get_logger("webhooks")

    async def consider(self, subscription_id: UUID, health: Health, *, wants_nothing: bool) -> None:
        """Make the subscription unavailable if the rule says so, or without asking it if `wants_nothing`.

        Nothing happens when the endpoint is not the one any more whose health this is.
        """
        if await until_done(
            "unavailable",
            lambda: self._make_unavailable(subscription_id, health, wants_nothing=wants_nothing),
        ):
            self._log.warning("subscription_unavailable", subscription=str(subscription_id))
            MADE_UNAVAILABLE.inc()
            self._wake()
            await self.hold(subscription_id)

    async def _make_unavailable(
        self, subscription_id: UUID, health: Health, *, wants_nothing: bool
    ) -> bool:
        now = self._clock()
        await self._days.ensure("event", {datetime.now(UTC).date()})
        async with self._database.transaction() as connection:
            if not wants_nothing:
                standing = await endpoints.standing(
                    connection,
                    subscription_id,
                    due_before=now - self._whole_schedule,
                    most=FAILED_EVENTS,
                )
                if not is_dead(health, standing, now):
                    return False
            record = await endpoints.make_unavailable(
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

    async def hold(self, subscription_id: UUID) -> None:
        """Hold what is pending of an unavailable subscription. What is in flight is not tried again if it fails."""
        await self._all(subscription_id, "unavailable", deliveries.hold)

    async def go_on(self) -> None:
        """Hold, or of deleted subscriptions drop, what somebody left who died or gave up while doing so."""
        async with self._database.transaction() as connection:
            left = await endpoints.left_over(connection)
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
