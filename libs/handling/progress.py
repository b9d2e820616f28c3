"""Readiness of a loop that works for ever: ready while its last sign of progress is recent."""

from __future__ import annotations

import time


class NoProgress(Exception):
    """The loop has given no sign of progress for too long, or none yet."""


class Progress:
    """
    Args:
        limit_seconds: how long one round of the loop may take, its waits included.
    """

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._last: float | None = None

    def made(self) -> None:
        """Called by the loop after each round."""
        self._last = time.monotonic()

    async def check(self) -> None:
        """For `Readiness.add`.

        Raises:
            NoProgress
        """
        if self._last is None or time.monotonic() - self._last > self._limit_seconds:
            raise NoProgress
