"""Room for a few calls at once and a few that wait, so that one kind of work cannot take all there is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.contracts.errors import Unavailable


class Bulkhead:
    """Args:
    waiting: of these places one tenant has half at most, so that there are some for the others.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting = Counter[str]()
        self._waiting_at_most = waiting

    @asynccontextmanager
    async def room(self, tenant: str) -> AsyncIterator[None]:
        """Wait for room and hold it for the body.

        Raises:
            Unavailable: as many wait already as may.
        """
        is_full = self._waiting.total() >= self._waiting_at_most
        if is_full or 2 * self._waiting[tenant] >= self._waiting_at_most:
            raise Unavailable
        self._waiting[tenant] += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= Counter({tenant: 1})
        try:
            yield
        finally:
            self._free.release()
