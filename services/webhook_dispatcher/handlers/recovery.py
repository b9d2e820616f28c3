"""Recovering a subscription: events whose delivery failed or was held in a period are delivered, each once.

Held deliveries become pending, one of each event. An event that failed for good gets a new delivery, or its held one
becomes pending. An event that was delivered since, or is on its way, gets neither; nor does one from before the
retention, which is kept while another delivery of its day is pending. A recovery goes in batches, since it
may be large. Each batch is a transaction under the lock of the subscription's row, so that two recoveries at once do
not deliver an event twice. A subscriber's command commits its progress with each batch, and other commands take their
turn in between (`batches.py`); an operator's request (`operating_recovery.py`) answers how far it has come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field
from uuid_utils import uuid7

from libs.contracts.errors import ErrorDetail, Invalid, OutcomePending
from libs.contracts.fields import UtcDateTime, Uuid
from libs.contracts.model import Model
from libs.contracts.result import Result
from libs.contracts.webhook_views import Recovery, SubscriptionStatus
from libs.contracts.webhooks import RecoverSubscription
from libs.handling.bulkhead import Turn
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from services.webhook_dispatcher.handlers.batches import Batches
from services.webhook_dispatcher.handlers.outcomes import Outcomes
from services.webhook_dispatcher.handlers.subscriptions import owned, owned_and_active
from services.webhook_dispatcher.models import SubscriptionRecord
from services.webhook_dispatcher.repository import deliveries, partitions, recovery

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
class Period:
    """Both inclusive; `until` is now where it is None."""

    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class _Batch:
    connection: AsyncConnection
    subscription_id: UUID
    since: datetime
    first_kept: date
    progress: Progress


class RecoveryHandler:
    """Handles a subscriber's command to recover a subscription.

    Args:
        retention: the longest time that `since` may lie in the past.
    """

    def __init__(
        self,
        outcomes: Outcomes,
        retention: timedelta,
        wake: Callable[[], None],
        batches: Batches,
    ) -> None:
        self._outcomes = outcomes
        self._retention = retention
        self._wake = wake
        self._batches = batches

    async def __call__(self, drive: Drive, command: RecoverSubscription) -> Result:
        """Raises OutcomePending where many commands of the tenant change deliveries. Between two batches, too: long
        recoveries would keep the others of the tenant out until they are done.
        """
        tenant = drive.principal.tenant
        async with self._batches.place(tenant) as turn:
            progress = await self._batch(drive, command, turn)
            while progress.phase != "done":
                if self._batches.is_full(tenant):
                    raise OutcomePending
                progress = await self._batch(drive, command, turn)
        return Result(data=Recovery(scheduled=progress.scheduled))

    async def _batch(self, drive: Drive, command: RecoverSubscription, turn: Turn) -> Progress:
        async def step(connection: AsyncConnection, known: Progress | None) -> Progress:
            return await self._step(connection, drive, command, known)

        async with turn():
            progress = await self._outcomes.step(drive, Progress, step)
        self._wake()
        return progress

    async def _step(
        self,
        connection: AsyncConnection,
        drive: Drive,
        command: RecoverSubscription,
        known: Progress | None,
    ) -> Progress:
        principal, subscription_id = drive.principal, command.subscription_id
        if known is None:
            subscription = await owned_and_active(connection, principal, subscription_id)
        else:
            subscription = await owned(connection, principal, subscription_id, for_change=True)
        period = Period(command.since, command.until)
        return await next_batch(connection, subscription, period, known, self._retention)


async def next_batch(
    connection: AsyncConnection,
    subscription: SubscriptionRecord,
    period: Period,
    known: Progress | None,
    retention: timedelta,
) -> Progress:
    """The next batch of a recovery, which begins where nothing is `known`. The subscription's row is locked.

    Raises:
        Invalid: what was kept since the beginning of the period is kept no longer, or the period ends before it begins.
    """
    progress = known or await _begin(connection, period, retention)
    if subscription.status is not SubscriptionStatus.ACTIVE:
        return progress.model_copy(update={"phase": "done"})  # not active any more
    first_kept = await partitions.earlier_today(connection) - retention
    while progress.phase != "done":
        before = progress
        batch = _Batch(connection, subscription.id, period.since, first_kept, before)
        work = _release_held if before.phase == "held" else _deliver_failed
        progress = await work(batch)
        if progress.phase == before.phase:
            break
    return progress


async def _begin(connection: AsyncConnection, period: Period, retention: timedelta) -> Progress:
    now = await recovery.now(connection)
    if period.since < now - retention:
        message = f"events are kept for {retention.days} days"
        raise Invalid([_about_since(message) | {"ctx": {"retention_days": retention.days}}])
    if period.until is None and period.since > now:
        raise Invalid([_about_since("`since` is in the future, and `until` is now by default")])
    return Progress(until=min(period.until or now, now))


def _about_since(message: str) -> ErrorDetail:
    return {"loc": ["body", "since"], "msg": message, "type": "value_error"}


async def _release_held(batch: _Batch) -> Progress:
    progress = batch.progress
    released = await recovery.release_held(
        batch.connection,
        batch.subscription_id,
        since=batch.since,
        until=progress.until,
        first_kept=batch.first_kept,
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
    failed_and_kept = [failure for failure in failed if failure.event_day >= batch.first_kept]
    again = await recovery.still_failed(connection, subscription_id, failed_and_kept)
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
