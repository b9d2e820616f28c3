"""Slots of this process, and how many of them each subscription gets next (interface §8, fairness).

At most 16 deliveries of a subscription are in flight over all processes, 2 when it is slow, 1 when its circuit breaker
is half-open. Slots go round the subscriptions one by one, so that none waits until another has nothing due. A tenant
gets a quarter of the slots. Beyond that it gets only slots that the other tenants do not need, and never the last
quarter, which stays free for tenants that have something due later.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from uuid import UUID

from services.webhook_dispatcher.repository.claims import DueSubscription

IN_FLIGHT = 16
IN_FLIGHT_SLOW = 2
IN_FLIGHT_HALF_OPEN = 1
TENANT_SHARE = 0.25
KEPT_FREE = 0.25


class Slots:
    """The slots that deliveries of this process use, from their claim until their attempt is recorded."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.by_tenant: Counter[str] = Counter()
        self._all_free = asyncio.Event()
        self._all_free.set()

    @property
    def used(self) -> int:
        return self.by_tenant.total()

    @property
    def free(self) -> int:
        return self.limit - self.used

    def take(self, tenant: str) -> None:
        self.by_tenant[tenant] += 1
        self._all_free.clear()

    def release(self, tenant: str) -> None:
        self.by_tenant[tenant] -= 1
        if not self.by_tenant[tenant]:
            del self.by_tenant[tenant]
        if not self.by_tenant:
            self._all_free.set()

    async def all_free(self) -> None:
        """Return when no slot is used."""
        await self._all_free.wait()


def allocate(
    subscriptions: Sequence[DueSubscription],
    tenants: Mapping[str, int],
    *,
    slots: int,
    used: int,
) -> dict[UUID, int]:
    """How many deliveries of each subscription to begin. Subscriptions that get none are left out.

    Args:
        tenants: slots used by each tenant, in this process.
        slots: of this process, of which `used` are used.
    """
    capacity = {
        subscription.id: min(subscription.due, limit_of(subscription) - subscription.in_flight)
        for subscription in subscriptions
    }
    begun: Counter[UUID] = Counter()
    having = Counter(tenants)
    share = max(1, int(slots * TENANT_SHARE))
    free = slots - used
    free -= _go_round(subscriptions, capacity, begun, having, free, share)
    lendable = free - int(slots * KEPT_FREE)
    _go_round(subscriptions, capacity, begun, having, lendable, slots)
    return dict(begun)


def most_due(subscriptions: int, free: int) -> int:
    """Up to how many due deliveries of each subscription are counted: twice its part of the free slots, for where other
    subscriptions need less than theirs. Each that is counted is a row that is read, and a million may be due.
    """
    return min(IN_FLIGHT, 2 * math.ceil(free / max(1, subscriptions)))


def in_turn(subscriptions: Sequence[DueSubscription], served_until: UUID) -> list[DueSubscription]:
    """The subscriptions in order of their ids, beginning after the one that was served last."""
    return sorted(
        subscriptions,
        key=lambda subscription: (
            subscription.id <= served_until,
            subscription.id,
        ),
    )


def limit_of(subscription: DueSubscription) -> int:
    """How many deliveries of the subscription may be in flight."""
    if subscription.is_half_open:
        return IN_FLIGHT_HALF_OPEN
    return IN_FLIGHT_SLOW if subscription.is_slow else IN_FLIGHT


def _go_round(
    subscriptions: Sequence[DueSubscription],
    capacity: dict[UUID, int],
    begun: Counter[UUID],
    having: Counter[str],
    free: int,
    most_of_tenant: int,
) -> int:
    """Give out free slots one by one, in turn. Returns how many."""
    given = 0
    turn = deque(subscriptions)
    while turn and given < free:
        subscription = turn.popleft()
        key = subscription.id
        if capacity[key] <= 0 or having[subscription.tenant] >= most_of_tenant:
            continue
        capacity[key] -= 1
        begun[key] += 1
        having[subscription.tenant] += 1
        given += 1
        turn.append(subscription)
    return given
