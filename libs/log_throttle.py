"""Lines of the log about what happens again and again: the first at once, later ones once in a period."""

from __future__ import annotations

import time
from collections.abc import Callable

PERIOD_SECONDS = 30.0


class LogThrottle:
    """Says when a line is due.

    Args:
        clock: in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = clock()
        self._left_out = 0

    def left_out(self) -> int | None:
        """None: the line is not due. Otherwise how many lines were left out since the last one; the caller logs it."""
        now = self._clock()
        if now < self._due_at:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        self._due_at = now + PERIOD_SECONDS
        return left_out
