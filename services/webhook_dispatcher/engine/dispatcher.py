"""The deliveries of one process, from their claim until their attempt is recorded: claimed while slots are free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

import structlog

from libs.messaging.deadlines import within
from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from services.webhook_dispatcher.engine.allocation import Slots
from services.webhook_dispatcher.engine.claiming import Claimer, LeasedDelivery
from services.webhook_dispatcher.engine.delivering import AttemptedDelivery, Sender
from services.webhook_dispatcher.engine.due_subscriptions import POLL_SECONDS, QUIET_POLL_SECONDS
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.ports import Poster

READY_SHARE = 2
"""The next claim is made while 1/READY_SHARE of the slots have yet to be posted, so that posts go on during the
claim: measured, a tenth of the rate.
"""


class Dispatcher:
    """Has at most `settings.slots` deliveries under way.

    Args:
        attempted: called with each delivery that was attempted; `recorded` is to be called once that is recorded.
    """

    def __init__(
        self,
        database: Database,
        poster: Poster,
        signer: Signer,
        settings: DeliverySettings,
        clock: Callable[[], datetime],
        attempted: Callable[[AttemptedDelivery], None],
    ) -> None:
        self._wake = asyncio.Event()
        self._slots = Slots(settings.slots)
        self._claimer = Claimer(database, self._slots, settings, clock)
        self._sender = Sender(
            database,
            poster,
            signer,
            clock,
            low=settings.slots // READY_SHARE,
            attempted=attempted,
            given_back=self._release,
            ran_low=self._wake.set,
        )
        self._claiming = asyncio.Lock()
        self._stopping = False
        self._log = structlog.get_logger("webhooks")

    def wake(self) -> None:
        """Something may be due: do not wait for the next sweep."""
        self._claimer.sweeps.want()
        self._wake.set()

    def added(self, subscriptions: Sequence[UUID], due_at: datetime) -> None:
        """These subscriptions have something due since then."""
        for subscription_id in subscriptions:
            self._claimer.active.note(subscription_id, due_at)
        self._wake.set()

    def recorded(self, batch: Sequence[AttemptedDelivery]) -> None:
        self._claimer.sweeps.expect()  # attempts that failed have a next one
        for attempted in batch:
            self._release(attempted.leased)

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sender.run(), name="sender")
            while True:
                self._wake.clear()
                if await until_available("claim", self._claim):
                    continue
                try:
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def stop(self, seconds: float) -> None:
        """Begin nothing more, and wait up to `seconds` until the attempts under way are recorded. Deliveries of a claim
        under way are given back.
        """
        self._stopping = True
        self._sender.stop()
        try:
            await within(seconds, self._until_idle(), name="deliveries")
        except TimeoutError:
            self._log.warning("deliveries_left_to_their_leases", count=self._slots.used)

    async def _until_idle(self) -> None:
        async with self._claiming:
            pass
        await self._slots.all_free()

    async def _claim(self) -> bool:
        """Claim what may be posted. True when it is worth claiming again at once."""
        if not self._may_claim() or not self._claimer.has_work():
            return False
        async with self._claiming:
            claimed, again = await self._claimer.claim()
            for leased in claimed:
                self._slots.take(leased.subscription.tenant)
                self._sender.add(leased)
        return again

    def _may_claim(self) -> bool:
        return not self._stopping and self._sender.is_low and self._slots.free > 0

    def _pause(self) -> float:
        """The seconds until the next claim. While none is possible, the end of a delivery or of the wait for posts sets
        `_wake`.
        """
        if not self._may_claim():
            return POLL_SECONDS
        pause = self._claimer.sweeps.next_at - asyncio.get_running_loop().time()
        return min(max(pause, 0.001), QUIET_POLL_SECONDS)

    def _release(self, leased: LeasedDelivery) -> None:
        self._slots.release(leased.subscription.tenant)
        self._wake.set()
