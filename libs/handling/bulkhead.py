"""A bulkhead: a bounded number of calls run and a bounded number wait, so that one kind of work cannot use up a
process's capacity.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.contracts.errors import Unavailable


class Bulkhead:
    """Args:
    waiting: of these places one tenant has half at most, so that there are some for the others.
    at_once_of_tenant: so many calls of one tenant have room at most; all of them unless given.
    """

    def __init__(self, at_once: int, waiting: int, *, at_once_of_tenant: int | None = None) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._at_once_of_tenant = at_once_of_tenant or at_once
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._present = Counter[str]()
        """Calls of a tenant, those that wait and those that have room: its semaphore is kept while there are any."""
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
        async with self._turn(tenant) as turn:
            self._waiting[tenant] += 1
            try:
                await turn.acquire()
                try:
                    await self._free.acquire()
                except BaseException:
                    turn.release()
                    raise
            finally:
                self._waiting -= Counter({tenant: 1})
            try:
                yield
            finally:
                self._free.release()
                turn.release()

    @asynccontextmanager
    async def _turn(self, tenant: str) -> AsyncIterator[asyncio.Semaphore]:
        """A tenant's own semaphore, so that its calls wait for one another and not before those of others."""
        turn = self._turns.setdefault(tenant, asyncio.Semaphore(self._at_once_of_tenant))
        self._present[tenant] += 1
        try:
            yield turn
        finally:
            self._present -= Counter({tenant: 1})
            if tenant not in self._present:
                del self._turns[tenant]
