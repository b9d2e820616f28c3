"""Exponential backoff of comparisons that fail, while the others go on."""

from __future__ import annotations

import time

from libs.backoff import Backoff

RETRIES = Backoff(first_seconds=1.0, longest_seconds=10.0)


class ComparisonBackoff:
    def __init__(self) -> None:
        self._pauses: dict[str, tuple[int, float]] = {}
        """By comparison: its failures in a row, and when its pause ends (monotonic clock)."""

    def failed(self, name: str) -> float:
        """Begin a pause; its length in seconds."""
        failures, _ = self._pauses.get(name, (0, 0.0))
        seconds = RETRIES.pause_seconds(failures + 1)
        self._pauses[name] = (failures + 1, time.monotonic() + seconds)
        return seconds

    def succeeded(self, name: str) -> None:
        self._pauses.pop(name, None)

    def remaining(self) -> dict[str, float]:
        """The comparisons that are paused, with the seconds until they may be tried again."""
        now = time.monotonic()
        return {name: until - now for name, (_, until) in self._pauses.items() if until > now}
