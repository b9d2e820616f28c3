"""Recovering a subscription for an operator: as much as one request has time for, and where the next one goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from pydantic import ValidationError

from libs.contracts.fields import UtcDateTime
from libs.contracts.model import Model
from libs.contracts.operating import webhooks as contract
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.operating.places import not_a_place
from libs.persistence.engine import Database
from services.webhook_dispatcher.handlers.recovery import Period, Progress, next_batch
from services.webhook_dispatcher.handlers.subscriptions import found_and_active, found_of_any


class _Resumption(Model):
    """Where a recovery goes on, and which recovery it is."""

    subscription_id: str
    since: UtcDateTime
    progress: Progress


class OperatorRecoveries:
    """Carries out the recoveries that operators request.

    Args:
        retention: the longest time that `since` may lie in the past.
        wake: called when something has become due.
    """

    def __init__(self, database: Database, retention: timedelta, wake: Callable[[], None]) -> None:
        self._database = database
        self._retention = retention
        self._wake = wake

    async def recover(
        self, principal: Principal, command: contract.OperatorRecover, deadline: float
    ) -> Result:
        """In batches, each a transaction with its audit row. None begins after half of the time, so that the one under
        way is done before the deadline.
        """
        until = (time.time() + deadline) / 2
        progress = await self._batch(principal, command, _resumed(command), is_first=True)
        while progress.phase != "done" and time.time() < until:
            progress = await self._batch(principal, command, progress, is_first=False)
        return Result(
            data=contract.OperatorRecovery(
                scheduled=progress.scheduled, next=_following(command, progress)
            )
        )

    async def _batch(
        self,
        principal: Principal,
        command: contract.OperatorRecover,
        known: Progress | None,
        *,
        is_first: bool,
    ) -> Progress:
        """Audited when it is the first of its request, or has an effect."""
        async with self._database.transaction() as connection:
            subscription = (
                await found_and_active(connection, command.subscription_id)
                if is_first
                else await found_of_any(connection, command.subscription_id, for_change=True)
            )
            period = Period(command.since, command.until)
            progress = await next_batch(connection, subscription, period, known, self._retention)
            scheduled = progress.scheduled - (known.scheduled if known is not None else 0)
            if is_first or scheduled:
                await record(
                    connection,
                    principal,
                    "webhooks.recover",
                    subscription_id=str(subscription.id),
                    since=command.since.isoformat(),
                    until=progress.until.isoformat(),
                    scheduled=scheduled,
                    reason=command.reason,
                )
        self._wake()
        return progress


def _following(command: contract.OperatorRecover, progress: Progress) -> str | None:
    if progress.phase == "done":
        return None
    resumption = _Resumption(
        subscription_id=command.subscription_id, since=command.since, progress=progress
    )
    return resumption.model_dump_json()


def _resumed(command: contract.OperatorRecover) -> Progress | None:
    """Raises Invalid: `after` is not from the same recovery."""
    if command.after is None:
        return None
    try:
        resumption = _Resumption.model_validate_json(command.after)
    except ValidationError:
        raise not_a_place("body") from None
    if (resumption.subscription_id, resumption.since) != (command.subscription_id, command.since):
        raise not_a_place("body")
    return resumption.progress
