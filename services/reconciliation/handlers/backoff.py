"""Exponential backoff of comparisons that fail, while the others go on."""

from __future__ import annotations

import time

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 10.0


class Backoff:
    def __init__(self) -> None:
        self._pauses: dict[str, tuple[float, float]] = {}
        """By comparison: the length of its last pause, and when that ends (monotonic clock)."""

    def failed(self, name: str) -> float:
        """Begin a pause, twice as long as the one before; its length in seconds."""
        last, _ = self._pauses.get(name, (FIRST_PAUSE_SECONDS / 2, 0.0))
        seconds = min(2 * last, LONGEST_PAUSE_SECONDS)
        self._pauses[name] = (seconds, time.monotonic() + seconds)
        return seconds

    def succeeded(self, name: str) -> None:
        self._pauses.pop(name, None)

    def remaining(self) -> dict[str, float]:
        """The comparisons that are paused, with the seconds until they may be tried again."""
        now = time.monotonic()
        return {name: until - now for name, (_, until) in self._pauses.items() if until > now}
