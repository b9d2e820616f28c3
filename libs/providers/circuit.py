"""A circuit breaker: a provider that fails again and again is left alone, then tried with one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable


class Circuit:
    """Closed: everything passes. Open: nothing does. After a pause one probe passes; its outcome decides.

    Each admitted request must report exactly one of `succeeded`, `failed`, `abandoned`.

    Args:
        failures_to_open: consecutive failures that open it.
        first_pause_seconds: how long it stays open; doubles with each failed probe.
        longest_pause_seconds: the bound of that doubling.
        changed: told when it opens (True) and closes (False).
    """

    def __init__(
        self,
        *,
        failures_to_open: int = 5,
        first_pause_seconds: float = 0.5,
        longest_pause_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[bool], None] | None = None,
    ) -> None:
        self._failures_to_open = failures_to_open
        self._first_pause_seconds = first_pause_seconds
        self._longest_pause_seconds = longest_pause_seconds
        self._clock = clock
        self._changed = changed
        self._failures = 0
        self._pause_seconds = first_pause_seconds
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
            self._pause_seconds = self._first_pause_seconds
            self._tell(True)

    def failed(self) -> None:
        """The provider was not reached, did not answer in time or answered 5xx."""
        if self._open_until is None:
            self._failures += 1
            if self._failures >= self._failures_to_open:
                self._open_until = self._clock() + self._pause_seconds
                self._tell(False)
        elif self._probing:
            self._probing = False
            self._pause_seconds = min(self._pause_seconds * 2, self._longest_pause_seconds)
            self._open_until = self._clock() + self._pause_seconds
        # Otherwise: sent before it opened. It says nothing new.

    def abandoned(self) -> None:
        """The request was given up from this side: it says nothing about the provider."""
        self._probing = False

    def _tell(self, closed: bool) -> None:
        if self._changed:
            self._changed(not closed)
