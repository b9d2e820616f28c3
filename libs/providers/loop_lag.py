"""How late this process's event loop ran while it waited for a provider: time that is not the provider's fault."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TICK_SECONDS = 0.1


class LoopLag:
    """Adds up by how much a timer came late, while a request is measured."""

    def __init__(self) -> None:
        self._measuring = 0
        self._late_seconds = 0.0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def measured(self) -> Iterator[Callable[[], float]]:
        """Gives a function: the seconds by which the loop has been late since the block began."""
        if self._measuring == 0:
            self._schedule()
        self._measuring += 1
        before = self._total()
        try:
            yield lambda: self._total() - before
        finally:
            self._measuring -= 1
            if self._measuring == 0 and self._timer is not None:
                self._timer.cancel()

    def _total(self) -> float:
        return self._late_seconds + max(0.0, time.monotonic() - self._due)

    def _schedule(self) -> None:
        self._due = time.monotonic() + TICK_SECONDS
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._late_seconds = self._total()
        self._schedule()
