"""Recovering a subscription: events whose delivery failed or was held in a period are delivered, each once.

Held deliveries become pending, one of each event. An event that failed for good gets a new delivery, or its held one
becomes pending. An event that was delivered since, or is on its way, gets neither. A recovery goes in batches, since it
may be large. Each batch is a transaction under the lock of the subscription's row, so that two recoveries at once do
not deliver an event twice; the progress is committed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils import uuid7

from libs.contracts.errors import Invalid
from libs.contracts.fields import UtcDateTime, Uuid
from libs.contracts.model import Model
from libs.contracts.result import Result
from libs.contracts.webhook_views import Recovery, SubscriptionStatus
from libs.contracts.webhooks import RecoverSubscription
from libs.handling.commands import Drive
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.handlers.subscriptions import owned, owned_and_active
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.repository import deliveries, recovery

BATCH = 2000


class Progress(Model):
    """How far a recovery has come.

    Args:
        after: the last delivery that was looked at in this phase.
        scheduled: deliveries that the recovery has made pending so far.
    """

    until: UtcDateTime
    phase: Literal["held", "failed", "done"] = "held"
    after: Uuid = recovery.BEGINNING
    scheduled: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True)
class _Batch:
    connection: AsyncConnection
    subscription_id: UUID
    since: datetime
    progress: Progress


class RecoveryHandler:
    """
    Args:
        retention: the longest time that `since` may lie in the past.
    """

    def __init__(self, outcomes: Outcomes, retention: timedelta, wake: Callable[[], None]) -> None:
        self._outcomes = outcomes
        self._retention = retention
        self._wake = wake

    async def __call__(self, drive: Drive, command: RecoverSubscription) -> Result:
        progress: Progress | None = None
        while progress is None or progress.phase != "done":

            async def step(connection: AsyncConnection, known: Progress | None) -> Progress:
                return await self._step(connection, drive, command, known)

            progress = await self._outcomes.step(drive, Progress, step)
            self._wake()
        return Result(data=Recovery(scheduled=progress.scheduled))

    async def _step(
        self,
        connection: AsyncConnection,
        drive: Drive,
        command: RecoverSubscription,
        known: Progress | None,
    ) -> Progress:
        if known is None:
            progress = begin(
                command.since,
                command.until,
                now=await recovery.now(connection),
                retention=self._retention,
            )
            subscription = await owned_and_active(
                connection, drive.principal, command.subscription_id
            )
        else:
            progress = known
            subscription = await owned(
                connection, drive.principal, command.subscription_id, for_change=True
            )
        return await go_on(connection, subscription, command.since, progress)


def begin(
    since: datetime, until: datetime | None, *, now: datetime, retention: timedelta
) -> Progress:
    """Raises Invalid: what was kept `since` is kept no longer."""
    if since < now - retention:
        message = f"Value error, events are kept for {retention.days} days"
        raise Invalid(
            [
                {
                    "loc": ["body", "since"],
                    "msg": message,
                    "type": "value_error",
                    "ctx": {"retention_days": retention.days},
                }
            ]
        )
    return Progress(until=min(until or now, now))


async def go_on(
    connection: AsyncConnection,
    subscription: SubscriptionRecord,
    since: datetime,
    progress: Progress,
) -> Progress:
    """The next batch of a recovery. The subscription's row is locked."""
    batch = _Batch(connection, subscription.id, since, progress)
    if subscription.status is not SubscriptionStatus.ACTIVE:
        return progress.model_copy(update={"phase": "done"})  # not active any more
    match progress.phase:
        case "held":
            return await _release_held(batch)
        case "failed":
            return await _deliver_failed(batch)
        case "done":
            return progress


async def _release_held(batch: _Batch) -> Progress:
    progress = batch.progress
    released = await recovery.release_held(
        batch.connection,
        batch.subscription_id,
        since=batch.since,
        until=progress.until,
        after=progress.after,
        limit=BATCH,
    )
    if released.last is None:
        return progress.model_copy(update={"phase": "failed", "after": recovery.BEGINNING})
    scheduled = progress.scheduled + released.released
    return progress.model_copy(update={"after": released.last, "scheduled": scheduled})


async def _deliver_failed(batch: _Batch) -> Progress:
    progress, connection, subscription_id = batch.progress, batch.connection, batch.subscription_id
    failed = await recovery.failures(
        connection,
        subscription_id,
        since=batch.since,
        until=progress.until,
        after=progress.after,
        limit=BATCH,
    )
    if not failed:
        return progress.model_copy(update={"phase": "done"})
    again = await recovery.still_failed(connection, subscription_id, failed)
    released = await recovery.release_redeliveries(
        connection, subscription_id, [event_id for _, event_id in again]
    )
    added = await deliveries.add_again(
        connection,
        subscription_id,
        [
            (UUID(bytes=uuid7().bytes), day, event_id)
            for day, event_id in again
            if event_id not in released
        ],
    )
    return progress.model_copy(
        update={
            "after": failed[-1].delivery_id,
            "scheduled": progress.scheduled + len(released) + added,
        }
    )
