"""Room for a few calls at once and a few that wait, so that one kind of work cannot take all there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.contracts.errors import Unavailable


class Bulkhead:
    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0
        self._waiting_at_most = waiting

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Wait for room and hold it for the body.

        Raises:
            Unavailable: as many wait already as may.
        """
        if self._waiting >= self._waiting_at_most:
            raise Unavailable
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
