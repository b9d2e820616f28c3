"""A circuit breaker: a provider that fails again and again is left alone, then tried with one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from libs.backoff import Backoff

PAUSES = Backoff(first_seconds=0.5, longest_seconds=10.0)


class Circuit:
    """Closed: everything passes. Open: nothing does. After a pause one probe passes; its outcome decides.

    Each admitted request must report exactly one of `succeeded`, `failed`, `abandoned`.

    Args:
        failures_to_open: consecutive failures that open it.
        pauses: how long it stays open before each probe.
        changed: told when it opens (True) and closes (False).
    """

    def __init__(
        self,
        *,
        failures_to_open: int = 5,
        pauses: Backoff = PAUSES,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[bool], None] | None = None,
    ) -> None:
        self._failures_to_open = failures_to_open
        self._pauses = pauses
        self._clock = clock
        self._changed = changed
        self._failures = 0
        self._failed_probes = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        return self._open_until is not None

    def admit(self) -> bool:
        """May a request be sent now?"""
        if self._open_until is None:
            return True
        if self._probing or self._clock() < self._open_until:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        """The provider answered sensibly."""
        self._failures = 0
        self._probing = False
        if self._open_until is not None:
            self._open_until = None
            self._failed_probes = 0
            self._tell(True)

    def failed(self) -> None:
        """The provider was not reached, did not answer in time or answered 5xx."""
        if self._open_until is None:
            self._failures += 1
            if self._failures >= self._failures_to_open:
                self._open_until = self._clock() + self._pauses.pause_seconds(1)
                self._tell(False)
        elif self._probing:
            self._probing = False
            self._failed_probes += 1
            pause = self._pauses.pause_seconds(1 + self._failed_probes)
            self._open_until = self._clock() + pause
        # Otherwise: sent before it opened. It says nothing new.

    def abandoned(self) -> None:
        """The request was given up from this side: it says nothing about the provider."""
        self._probing = False

    def _tell(self, closed: bool) -> None:
        if self._changed:
            self._changed(not closed)
