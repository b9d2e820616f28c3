"""Claiming due deliveries: one transaction, in which subscriptions are looked at and slots are given to them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID, uuid4

import asyncpg
import structlog

from libs.persistence.engine import Database
from services.webhook_dispatcher.engine.allocation import (
    IN_FLIGHT,
    Slots,
    allocate,
    in_turn,
    most_due,
)
from services.webhook_dispatcher.engine.due_subscriptions import ActiveSubscriptions, Sweeps
from services.webhook_dispatcher.engine.rules import POST_SECONDS, DeliverySettings
from services.webhook_dispatcher.repository import claims
from services.webhook_dispatcher.repository.claims import Claimed, DueSubscription


@dataclass(frozen=True, slots=True)
class LeasedDelivery:
    """A delivery that this process has claimed.

    Args:
        begin_before: by the event loop's clock; a post that begins later could outlast the lease.
    """

    delivery: Claimed
    subscription: DueSubscription
    claim: UUID
    begin_before: float
    body: bytes = field(repr=False)


class Claimer:
    """Claims as many deliveries as there are free slots for. Claims of one process go one after another."""

    def __init__(
        self,
        database: Database,
        slots: Slots,
        settings: DeliverySettings,
        clock: Callable[[], datetime],
    ) -> None:
        self.active = ActiveSubscriptions()
        self.sweeps = Sweeps()
        self._database = database
        self._slots = slots
        self._settings = settings
        self._clock = clock
        self._served_until = claims.FIRST
        self._log = structlog.get_logger("webhooks")

    def has_work(self) -> bool:
        """Whether a sweep is due, or a subscription is active."""
        return self._is_sweep_due() or bool(self.active)

    async def claim(self) -> tuple[list[LeasedDelivery], bool]:
        """The deliveries that were claimed, and whether it is worth claiming again at once."""
        started = asyncio.get_running_loop().time()
        sweeping = self._is_sweep_due()
        if sweeping:
            self.sweeps.begin()
        now, claim = self._clock(), uuid4()
        async with claims.claiming(self._database) as connection:
            # The wait for other processes' claims is over: it does not count as time of a sweep.
            looking_since = asyncio.get_running_loop().time()
            due_from = await self._looked_at(connection, sweeping=sweeping)
            most = most_due(len(due_from), self._slots.free)
            found = (
                await claims.due_subscriptions(connection, due_from, now, most_due=most)
                if due_from
                else []
            )
            counts = allocate(
                in_turn(found, self._served_until),
                self._slots.by_tenant,
                slots=self._slots.limit,
                used=self._slots.used,
            )
            # The probe of a half-open circuit breaker is what was put first, wherever an earlier claim ended.
            due_from |= {one.id: claims.EVER for one in found if one.is_half_open}
            claimed = await self._take(connection, counts, due_from, claim, now) if counts else []
        if counts:
            self._served_until = next(reversed(counts))
        self.active.note_found(found, claimed)
        has_more = len(due_from) == claims.MOST_SUBSCRIPTIONS
        if sweeping:
            until = next(reversed(due_from)) if has_more else None
            self.sweeps.note(looking_since, until, anything_waits=bool(due_from))
        subscriptions = {one.id: one for one in found}
        begin_before = started + self._settings.lease_seconds - POST_SECONDS
        leased = [
            LeasedDelivery(
                delivery,
                subscriptions[delivery.subscription_id],
                claim,
                begin_before,
                delivery.body,
            )
            for delivery in claimed
            if delivery.body is not None
        ]
        of_each = Counter(one.delivery.subscription_id for one in leased)
        counted_short = most < IN_FLIGHT and most in of_each.values()
        return leased, counted_short or (has_more and (sweeping or bool(counts)))

    def _is_sweep_due(self) -> bool:
        return asyncio.get_running_loop().time() >= self.sweeps.next_at

    async def _looked_at(
        self, connection: asyncpg.Connection, *, sweeping: bool
    ) -> dict[UUID, datetime]:
        """Subscriptions, and from when on their due deliveries are looked at."""
        if not sweeping:
            return self.active.take()
        waiting = await claims.with_work(connection, after=self.sweeps.after)
        return dict.fromkeys(waiting, claims.EVER)

    async def _take(
        self,
        connection: asyncpg.Connection,
        counts: Mapping[UUID, int],
        due_from: Mapping[UUID, datetime],
        claim: UUID,
        now: datetime,
    ) -> list[Claimed]:
        claimed = await claims.take(
            connection, counts, due_from, claim, now=now, lease_seconds=self._settings.lease_seconds
        )
        without_event = [delivery for delivery in claimed if delivery.body is None]
        if without_event:
            first_kept = now.date() - self._settings.retention
            await self._let_go(connection, without_event, claim, first_kept)
        return claimed

    async def _let_go(
        self,
        connection: asyncpg.Connection,
        without_event: Sequence[Claimed],
        claim: UUID,
        first_kept: date,
    ) -> None:
        """Drop the deliveries whose event is beyond the retention, and give the others back.

        The events of the others exist: a statement that was planned just before the first event of a day was recorded
        does not know the partition of that day. The next sweep's statements do.
        """
        lost = [delivery.id for delivery in without_event if delivery.event_day < first_kept]
        unseen = [delivery.id for delivery in without_event if delivery.event_day >= first_kept]
        self._log.error("deliveries_without_event", dropped=len(lost), given_back=len(unseen))
        await claims.drop(connection, lost, claim)
        await claims.give_back(connection, unseen, claim)
