"""A circuit breaker in front of one provider."""

from __future__ import annotations

import time
from collections.abc import Callable

from libs.backoff import Backoff

PAUSES = Backoff(first_seconds=0.5, longest_seconds=10.0)
LEFT_ALONE_SECONDS = 600.0
"""As long as the longest pause of a command that is driven again: one that waits for the provider probes by then."""


class Circuit:
    """Closed: requests pass. Open: requests are refused. Half-open, after a pause: one probe passes, and its outcome
    closes or opens the circuit.

    Each admitted request must report exactly one of `succeeded`, `failed`, `abandoned`.

    Args:
        failures_to_open: consecutive failures that open it.
        pauses: how long it stays open before each probe.
        changed: called with True when the circuit opens, with False when it closes.
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
    def is_shown_open(self) -> bool:
        """Whether operators are told that it is open. They are not once no probe has been sent for `LEFT_ALONE_SECONDS`
        since one could be: of a provider that this process does not ask, nothing is known.
        """
        if self._open_until is None:
            return False
        return self._clock() < self._open_until + LEFT_ALONE_SECONDS

    @property
    def refuses(self) -> bool:
        """Whether `admit` would refuse a request."""
        if self._open_until is None:
            return False
        return self._probing or self._clock() < self._open_until

    def admit(self) -> bool:
        """Whether a request may be sent now."""
        if self._open_until is None:
            return True
        if self.refuses:
            return False
        self._probing = True
        return True

    def succeeded(self) -> None:
        """The provider gave a usable answer."""
        self._failures = 0
        self._probing = False
        if self._open_until is not None:
            self._open_until = None
            self._failed_probes = 0
            self._report(is_open=False)

    def failed(self) -> None:
        """The provider was not reached, did not answer in time or answered 5xx."""
        if self._open_until is None:
            self._failures += 1
            if self._failures >= self._failures_to_open:
                self._open_until = self._clock() + self._pauses.pause_seconds(1)
                self._report(is_open=True)
        elif self._probing:
            self._probing = False
            self._failed_probes += 1
            pause = self._pauses.pause_seconds(1 + self._failed_probes)
            self._open_until = self._clock() + pause
        # Otherwise it was sent before the circuit opened, and says nothing new.

    def abandoned(self) -> None:
        """The request was given up on this side, which says nothing about the provider."""
        self._probing = False

    def _report(self, *, is_open: bool) -> None:
        if self._changed:
            self._changed(is_open)
