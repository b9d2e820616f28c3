"""Recording attempts in batches: those that end while a batch is written go into the next."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from libs.persistence.engine import Database
from libs.persistence.retries import until_available
from libs.runtime.crash import crash_point
from services.webhook_dispatcher.engine.delivering import AttemptedDelivery
from services.webhook_dispatcher.engine.health import (
    after_attempt,
    ended_at,
    may_become_unavailable,
)
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.schedule import (
    Random,
    next_attempt_at,
    pause,
    whole_seconds,
)
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.metrics import ATTEMPTS, CLAIMS_LOST, CONCLUDED
from services.webhook_dispatcher.ports import AttemptOutcome
from services.webhook_dispatcher.repository import endpoints, finishing
from services.webhook_dispatcher.repository.endpoints import Health
from services.webhook_dispatcher.repository.finishing import Conclusion, Ending
from services.webhook_dispatcher.repository.partitions import Partitions

BATCH = 256
NOT_TRIED_SECONDS = 30.0
NOT_TRIED_PART = 20
MOST_NOT_TRIED_SECONDS = 600.0
"""The pause after an attempt that was not made for a reason of our own: this part of the age of the delivery, within
these bounds. So a fault that lasts for days costs some 430 looks at each delivery.
"""


class AttemptRecorder:
    """Records one batch at a time. At most as many attempts wait as the dispatcher has slots.

    Args:
        recorded: called with each batch when it is recorded.
    """

    def __init__(
        self,
        database: Database,
        partitions: Partitions,
        unavailability: Unavailability,
        settings: DeliverySettings,
        clock: Callable[[], datetime],
        random: Random,
        recorded: Callable[[Sequence[AttemptedDelivery]], None],
    ) -> None:
        self._database = database
        self._partitions = partitions
        self._unavailability = unavailability
        self._settings = settings
        self._clock = clock
        self._random = random
        self._recorded = recorded
        self._waiting: deque[AttemptedDelivery] = deque()
        self._any = asyncio.Event()
        self._log = structlog.get_logger("webhooks")

    def add(self, attempted: AttemptedDelivery) -> None:
        self._waiting.append(attempted)
        self._any.set()

    async def run(self) -> None:
        """Work for ever."""
        while True:
            await self._any.wait()
            batch = self._next_batch()
            if not self._waiting:
                self._any.clear()
            await self.write(batch)
            self._recorded(batch)

    def _next_batch(self) -> list[AttemptedDelivery]:
        """Each delivery once: after its lease ended, it may have been claimed and attempted again before this one is
        recorded.
        """
        batch: dict[UUID, AttemptedDelivery] = {}
        while self._waiting and len(batch) < BATCH:
            if self._waiting[0].leased.delivery.id in batch:
                break
            attempted = self._waiting.popleft()
            batch[attempted.leased.delivery.id] = attempted
        return list(batch.values())

    async def write(self, batch: Sequence[AttemptedDelivery]) -> None:
        """Return when the batch is recorded, and subscriptions whose endpoint answered 410 are unavailable."""
        endings = [self._ending(attempted) for attempted in batch]
        recorded, known = await until_available("finish", lambda: self._commit(batch, endings))
        self._count(batch, recorded)
        now = self._clock()
        replies_of_410 = {
            (attempted.leased.delivery.subscription_id, attempted.leased.subscription.generation)
            for attempted in batch
            if attempted.attempt.outcome is AttemptOutcome.GONE
            and attempted.leased.delivery.id in recorded
        }
        for subscription_id, health in known.items():
            answered_410 = (subscription_id, health.generation) in replies_of_410
            if answered_410 or may_become_unavailable(health, now):
                await self._unavailability.consider(
                    subscription_id, health, answered_410=answered_410
                )

    def _ending(self, attempted: AttemptedDelivery) -> Ending:
        attempt, delivery = attempted.attempt, attempted.leased.delivery
        at, retry_seconds = ended_at(attempt), self._settings.retry_seconds
        # What we did not try takes nothing from the subscriber's schedule, for as long as that lasts. A delivery that
        # was held may be older than that when it is released.
        begun = (delivery.created_at, delivery.released_at, attempted.leased.subscription.reset_at)
        since = max(moment for moment in begun if moment is not None)
        age = (at - since).total_seconds()
        is_counted = attempt.outcome is not AttemptOutcome.NOT_TRIED or age > whole_seconds(
            retry_seconds
        )
        due_at = None
        if not is_counted:
            rest = min(max(NOT_TRIED_SECONDS, age / NOT_TRIED_PART), MOST_NOT_TRIED_SECONDS)
            due_at = at + timedelta(seconds=pause(rest, self._random))
        elif attempt.outcome is not AttemptOutcome.SUCCEEDED:
            due_at = next_attempt_at(
                retry_seconds,
                delivery.attempts_made - delivery.schedule_from + 1,
                at,
                attempt.retry_after,
                self._random,
            )
        succeeded = attempt.outcome is AttemptOutcome.SUCCEEDED
        return Ending(
            delivery_id=delivery.id,
            claim=attempted.leased.claim,
            concluded="succeeded" if succeeded else "failed" if due_at is None else None,
            due_at=due_at,
            attempted_at=attempt.attempted_at,
            duration_ms=attempt.duration_ms,
            response_status=attempt.response_status,
            error=attempt.error,
            response_body=attempt.response_body,
            is_counted=is_counted,
            released_at=delivery.released_at,
        )

    async def _commit(
        self, batch: Sequence[AttemptedDelivery], endings: Sequence[Ending]
    ) -> tuple[dict[UUID, Conclusion | None], dict[UUID, Health]]:
        """What became of the deliveries that were recorded, and the health of their endpoints."""
        days = {ending.attempted_at.astimezone(UTC).date() for ending in endings}
        await self._partitions.ensure("attempt", days)
        ended = list(zip(batch, endings, strict=True))
        ids = {attempted.leased.delivery.subscription_id for attempted in batch}
        async with self._database.driver() as connection:
            known = await endpoints.read(connection, ids)
            changing = _changing(known, ended)
            if not changing:
                crash_point("webhook_dispatcher.finishing")
                recorded = await finishing.finish(connection, endings)
        if changing:
            async with self._database.driver_transaction() as connection:
                recorded = await finishing.finish(connection, endings)
                # Another process may have written since the first read.
                locked = await endpoints.lock(connection, changing)
                changed = _all_after(
                    locked,
                    [
                        (attempted, replace(ending, concluded=recorded[ending.delivery_id]))
                        for attempted, ending in ended
                        if ending.delivery_id in recorded
                    ],
                )
                if changed:
                    await endpoints.save(connection, changed)
                crash_point("webhook_dispatcher.finishing")
            known |= changed
        crash_point("webhook_dispatcher.finished")
        return recorded, known

    def _count(
        self, batch: Sequence[AttemptedDelivery], recorded: Mapping[UUID, Conclusion | None]
    ) -> None:
        outcomes: Counter[str] = Counter()
        conclusions: Counter[str] = Counter()
        for attempted in batch:
            delivery_id = attempted.leased.delivery.id
            if delivery_id not in recorded:
                self._log.warning("claim_lost", delivery=str(delivery_id))
                CLAIMS_LOST.inc()
                continue
            outcomes[attempted.attempt.outcome.value] += 1
            if (concluded := recorded[delivery_id]) is not None:
                conclusions[concluded] += 1
        for outcome, count in outcomes.items():
            ATTEMPTS.labels(outcome).inc(count)
        for how, count in conclusions.items():
            CONCLUDED.labels(how).inc(count)


def _changing(
    known: Mapping[UUID, Health], ended: Sequence[tuple[AttemptedDelivery, Ending]]
) -> set[UUID]:
    """The endpoints whose health changes by one of the attempts, each considered by itself."""
    return {
        attempted.leased.delivery.subscription_id
        for attempted, ending in ended
        if (health := known.get(attempted.leased.delivery.subscription_id)) is not None
        and _after(health, attempted, ending) != health
    }


def _all_after(
    known: Mapping[UUID, Health], ended: Sequence[tuple[AttemptedDelivery, Ending]]
) -> dict[UUID, Health]:
    """These healths after the attempts, in the order in which they ended."""
    after = dict(known)
    for attempted, ending in ended:
        key = attempted.leased.delivery.subscription_id
        if key in after:
            after[key] = _after(after[key], attempted, ending)
    return after


def _after(health: Health, attempted: AttemptedDelivery, ending: Ending) -> Health:
    """An attempt at an endpoint that was replaced since does not change the health of the new one."""
    if health.generation != attempted.leased.subscription.generation:
        return health
    return after_attempt(health, attempted.attempt, failed_for_good=ending.concluded == "failed")
