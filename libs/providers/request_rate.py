"""How many requests a second a process makes to a provider, where it would otherwise make as many as are answered."""

from __future__ import annotations

import asyncio
import time


class RequestRate:
    """Spaces requests evenly: shared by all coroutines of one event loop that use it.

    Args:
        per_second: at most.
    """

    def __init__(self, per_second: float) -> None:
        self._gap_seconds = 1 / per_second
        self._next_at = time.monotonic()

    async def turn(self, deadline: float) -> bool:
        """Return when the next request may be sent.

        False, at once, if that is not before the deadline, in Unix seconds: no turn is taken then.
        """
        now = time.monotonic()
        begins_at = max(now, self._next_at)
        if begins_at - now >= deadline - time.time():
            return False
        self._next_at = begins_at + self._gap_seconds
        await asyncio.sleep(begins_at - now)
        return True
