"""How many deliveries of which subscription are begun next (interface §8, fairness).

At most 16 of a subscription are in flight over all processes, 2 when it is slow, 1 when it is probed. Slots go round
the subscriptions one by one, so that none waits for what another has due. A tenant gets a quarter of the slots; beyond
it, only what the other tenants have left over, and never the last quarter, which is kept for whoever comes next.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from uuid import UUID

from services.webhook_dispatcher.repository.claims import Candidate

IN_FLIGHT = 16
IN_FLIGHT_SLOW = 2
IN_FLIGHT_PROBED = 1
TENANT_SHARE = 0.25
KEPT_FREE = 0.25


def allocate(
    candidates: Sequence[Candidate],
    tenants: Mapping[str, int],
    *,
    slots: int,
    used: int,
) -> dict[UUID, int]:
    """How many to begin of each; of what is not named, none.

    Args:
        tenants: slots used by each tenant, in this process.
        slots: of this process, of which `used` are used.
    """
    room = {
        candidate.subscription_id: min(candidate.due, limit_of(candidate) - candidate.in_flight)
        for candidate in candidates
    }
    begun: Counter[UUID] = Counter()
    having = Counter(tenants)
    share = max(1, int(slots * TENANT_SHARE))
    free = slots - used
    free -= _go_round(candidates, room, begun, having, free, share)
    lendable = free - int(slots * KEPT_FREE)
    _go_round(candidates, room, begun, having, lendable, slots)
    return dict(begun)


def most_due(subscriptions: int, free: int) -> int:
    """How many due deliveries of each subscription are worth counting, where so many slots are free: twice its part of
    them, for where others have less. With a million due, each that is counted is a page that is read.
    """
    return min(IN_FLIGHT, 2 * math.ceil(free / max(1, subscriptions)))


def in_turn(candidates: Sequence[Candidate], served_until: UUID) -> list[Candidate]:
    """The candidates in order of their ids, beginning after the one that was served last: every one has its turn."""
    return sorted(
        candidates,
        key=lambda candidate: (
            candidate.subscription_id <= served_until,
            candidate.subscription_id,
        ),
    )


def limit_of(candidate: Candidate) -> int:
    """What the subscription may have in flight."""
    if candidate.is_probed:
        return IN_FLIGHT_PROBED
    return IN_FLIGHT_SLOW if candidate.is_slow else IN_FLIGHT


def _go_round(
    candidates: Sequence[Candidate],
    room: dict[UUID, int],
    begun: Counter[UUID],
    having: Counter[str],
    free: int,
    most_of_tenant: int,
) -> int:
    """Give out free slots one by one, in turn; how many."""
    given = 0
    turn = deque(candidates)
    while turn and given < free:
        candidate = turn.popleft()
        key = candidate.subscription_id
        if room[key] <= 0 or having[candidate.tenant] >= most_of_tenant:
            continue
        room[key] -= 1
        begun[key] += 1
        having[candidate.tenant] += 1
        given += 1
        turn.append(candidate)
    return given
