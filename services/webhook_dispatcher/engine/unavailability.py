"""Making subscriptions unavailable: those whose endpoint has failed for days, or answered 410.

Deliveries of an unavailable subscription are held, and `recover` sends them. An event about it goes to the subscriber's
other subscriptions.

Recording attempts waits only until an endpoint that answered 410 is sent nothing more. Background tasks find out which
endpoints have failed for days, and hold the pending deliveries, which may be millions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import NoReturn
from uuid import UUID

import structlog

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.engine.health import (
    FAILED_EVENTS,
    FAILED_OVER,
    NO_SUCCESS,
    may_become_unavailable,
    overdue_before,
    should_become_unavailable,
)
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.schedule import whole_seconds
from services.webhook_dispatcher.metrics import MADE_UNAVAILABLE
from services.webhook_dispatcher.repository import endpoints, recording, strays, subscriptions
from services.webhook_dispatcher.repository import health as healths
from services.webhook_dispatcher.repository.endpoints import Health
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.views import subscription_event

BATCH = 5000
LOOK_SECONDS = 60.0
"""The least time between two looks at the same endpoint."""
QUIET_AT_ONCE = 4000
"""How many endpoints are looked at without an attempt, each time: a million within some hours."""
_BEFORE_ALL = UUID(int=0)


class Unavailability:
    """Makes subscriptions unavailable, and holds their deliveries.

    Args:
        wake: called when a delivery of the event about an unavailable subscription is due.
    """

    def __init__(
        self,
        database: Database,
        partitions: Partitions,
        settings: DeliverySettings,
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._partitions = partitions
        self._whole_schedule = timedelta(seconds=whole_seconds(settings.retry_seconds))
        self._clock = clock
        self._wake = wake
        self._suspects: set[UUID] = set()
        self._looked_until = _BEFORE_ALL
        self._any_suspect = asyncio.Event()
        self._any_strays = asyncio.Event()
        self._log = structlog.get_logger("webhooks")

    async def consider(self, subscription_id: UUID, health: Health, *, answered_410: bool) -> None:
        """Make the subscription unavailable, at once if its endpoint `answered_410`, or soon if the endpoint has
        failed for days (`health.py`).

        Nothing happens when the endpoint was replaced since `health` was read.
        """
        if answered_410:
            await self._make_unavailable(subscription_id, health, answered_410=True)
        else:
            self._suspects.add(subscription_id)
            self._any_suspect.set()

    async def look_for_ever(self) -> NoReturn:
        """Find out which endpoints have failed for days. Each is looked at once in `LOOK_SECONDS` at most."""
        while True:
            await self._any_suspect.wait()
            await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def suspect_quiet(self) -> None:
        """Have the next endpoints looked at that have failed for days, those without a further attempt included: an
        event may have been the last one before the five days, or the day between failed events, were over.
        """
        now = self._clock()
        async with self._database.driver() as connection:
            failed, looked_until = await endpoints.failed(
                connection,
                self._looked_until,
                failed_events=FAILED_EVENTS,
                failing_before=now - FAILED_OVER,
                succeeded_before=now - NO_SUCCESS,
                most=QUIET_AT_ONCE,
            )
        self._looked_until = looked_until or _BEFORE_ALL
        if failed:
            self._suspects.update(failed)
            self._any_suspect.set()

    async def _look(self) -> None:
        suspects, self._suspects = self._suspects, set()
        self._any_suspect.clear()
        known = await until_available("look", lambda: self._healths(suspects))
        for subscription_id, health in known.items():
            if may_become_unavailable(health, self._clock()):
                await self._make_unavailable(subscription_id, health, answered_410=False)

    async def _healths(self, suspects: Collection[UUID]) -> dict[UUID, Health]:
        async with self._database.driver() as connection:
            return await endpoints.read(connection, suspects)

    async def hold_for_ever(self) -> NoReturn:
        """Hold the pending deliveries of subscriptions that this process made unavailable."""
        while True:
            await self._any_strays.wait()
            self._any_strays.clear()
            await until_available("hold", self.change_strays)

    async def _make_unavailable(
        self, subscription_id: UUID, health: Health, *, answered_410: bool
    ) -> None:
        if await until_available(
            "unavailable",
            lambda: self._record_unavailable(subscription_id, health, answered_410=answered_410),
        ):
            self._log.warning("subscription_unavailable", subscription=str(subscription_id))
            MADE_UNAVAILABLE.inc()
            self._wake()
            self._any_strays.set()

    async def _record_unavailable(
        self, subscription_id: UUID, health: Health, *, answered_410: bool
    ) -> bool:
        now = self._clock()
        await self._partitions.ensure("event", {datetime.now(UTC).date()})
        async with self._database.transaction() as connection:
            if not answered_410 and not await self._should_become_unavailable(
                connection, subscription_id, now
            ):
                return False
            record = await subscriptions.make_unavailable(
                connection, subscription_id, health.generation, now
            )
            if record is None:
                return False
            # This waits for events that are being recorded by the status before: their deliveries become strays too.
            event = subscription_event("unavailable", record, record.sequence)
            await recording.record(connection, event)
            crash_point("webhook_dispatcher.giving_up")
        crash_point("webhook_dispatcher.given_up")
        return True

    async def _should_become_unavailable(
        self, connection: AsyncConnection, subscription_id: UUID, now: datetime
    ) -> bool:
        """By the endpoint's row as it is now, since a success may have been recorded after the look. The subscription's
        row is locked until the transaction ends, so that its endpoint is not replaced.
        """
        await subscriptions.find_of_any(connection, subscription_id, for_change=True)
        known = await healths.read(connection, [subscription_id])
        overdue = await endpoints.overdue_deliveries(
            connection,
            subscription_id,
            due_before=overdue_before(now, self._whole_schedule),
            most=FAILED_EVENTS,
        )
        return any(should_become_unavailable(one.health, overdue, now) for one in known)

    async def change_strays(self) -> None:
        """Change all strays of disabled, unavailable and deleted subscriptions, also those that a process left when it
        died. A delivery in flight is not tried again if it fails.
        """
        async with self._database.transaction() as connection:
            found = await strays.subscriptions(connection)
        for subscription_id, status in found:
            await self._change_strays_of(subscription_id, status)

    async def _change_strays_of(self, subscription_id: UUID, status: strays.Status) -> None:
        async def change() -> int | None:
            async with self._database.transaction() as connection:
                return await strays.change(connection, subscription_id, status, BATCH)

        while await until_available(status, change) == BATCH:
            pass
