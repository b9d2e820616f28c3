"""Which subscriptions the next claim looks at.

A claim looks at the *active* subscriptions: those of which a delivery was recorded by this process, or found due by an
earlier claim. A *sweep* looks at all others, every 250 ms. It looks at each subscription that waits for anything, a
retry tomorrow included: where these are so many that it takes long, sweeps are rarer, so that they take at most a tenth
of the time. No pause is longer than 5 s: a sweep may have taken long since the database stood still, and due deliveries
wait for the next one. After one that found nothing that waits, the next is a second later: only what another process
records meanwhile could be due, and what this process is attempting and will have to repeat (`Sweeps.expect`).

There is no NOTIFY to wake other processes. The process that records an event is woken at once, and claims for all
subscriptions; another process is needed only when the slots of the first are used up, which lasts longer than 250 ms. A
NOTIFY would take an instance-wide lock at the commit of every batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from uuid import UUID

from services.webhook_dispatcher.repository import claims
from services.webhook_dispatcher.repository.claims import Claimed, DueSubscription

POLL_SECONDS = 0.25
QUIET_POLL_SECONDS = 1.0
"""After a sweep that found no subscription that waits for anything."""
SWEEPING_SHARE = 10
"""Sweeping takes at most 1/SWEEPING_SHARE of the time, as far as `LONGEST_PAUSE_SECONDS` allows."""
LONGEST_PAUSE_SECONDS = 5.0


class ActiveSubscriptions:
    """Subscriptions that may have something due, and since when."""

    def __init__(self) -> None:
        self._due_since: dict[UUID, datetime] = {}

    def __bool__(self) -> bool:
        return bool(self._due_since)

    def note(self, subscription_id: UUID, due_since: datetime) -> None:
        self._due_since[subscription_id] = min(
            due_since, self._due_since.get(subscription_id, due_since)
        )

    def take(self) -> dict[UUID, datetime]:
        """Remove those that were noted longest ago, as many as one claim looks at."""
        some = dict(islice(self._due_since.items(), claims.MOST_SUBSCRIPTIONS))
        for subscription_id in some:
            del self._due_since[subscription_id]
        return some

    def note_found(self, found: Sequence[DueSubscription], claimed: Sequence[Claimed]) -> None:
        """Note that more may be due of the subscriptions that a claim found, from where the claim ended.

        What became due earlier, or was passed over or given back, is found by the next sweep.
        """
        ended = {delivery.subscription_id: delivery.due_at for delivery in claimed}
        for subscription in found:
            subscription_id = subscription.id
            self.note(subscription_id, ended.get(subscription_id, subscription.due_since))


class Sweeps:
    """When to sweep, and where a sweep goes on that takes several claims. Times are the event loop's."""

    def __init__(self) -> None:
        self.after = claims.FIRST
        """The subscription after which the sweep goes on."""
        self._seconds = 0.0
        self._ended = 0.0
        self._not_before = 0.0
        self._next_at = 0.0
        self._is_wanted = False

    def want(self) -> None:
        """Something may be due: sweep as soon as the share of the time allows."""
        self._is_wanted = True

    def expect(self) -> None:
        """Something may wait that the last sweep did not find: the pause after it is not the longer one."""
        self._next_at = min(self._next_at, max(self._not_before, self._ended + POLL_SECONDS))

    @property
    def next_at(self) -> float:
        if self.after != claims.FIRST:
            return 0.0  # a sweep is under way
        return self._not_before if self._is_wanted else self._next_at

    def begin(self) -> None:
        """A claim of a sweep begins. What is wanted from now on, a sweep that is under way may not find."""
        if self.after == claims.FIRST:
            self._is_wanted = False

    def note(self, started: float, until: UUID | None, *, anything_waits: bool) -> None:
        """A claim of the sweep is over.

        Args:
            until: the last subscription that it looked at; None when there are no more.
            anything_waits: it looked at a subscription.
        """
        ended = asyncio.get_running_loop().time()
        self._seconds += ended - started
        if until is not None:
            self.after = until
            return
        is_quiet = self.after == claims.FIRST and not anything_waits
        self.after = claims.FIRST
        self._ended = ended
        self._not_before = ended + min(self._seconds * SWEEPING_SHARE, LONGEST_PAUSE_SECONDS)
        pause_seconds = QUIET_POLL_SECONDS if is_quiet else POLL_SECONDS
        self._next_at = max(self._not_before, ended + pause_seconds)
        self._seconds = 0.0
