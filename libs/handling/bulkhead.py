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
    """Bounds the calls of one kind of work.

    Args:
        at_once: the most calls that run.
        waiting: the most that wait; one tenant may have half of these.
        at_once_of_tenant: the most of one tenant that run; `at_once` unless given.
    """

    def __init__(self, at_once: int, waiting: int, *, at_once_of_tenant: int | None = None) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._at_once_of_tenant = at_once_of_tenant or at_once
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._present = Counter[str]()
        """By tenant, its calls that wait or run: its semaphore is kept while it has any."""
        self._waiting = Counter[str]()
        self._waiting_at_most = waiting

    @asynccontextmanager
    async def slot(self, tenant: str) -> AsyncIterator[None]:
        """Wait until a call of the tenant may run; the body is the call.

        Raises:
            Unavailable: as many calls as may are waiting, in all or of this tenant.
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
        """A tenant's own semaphore: its calls beyond `at_once_of_tenant` wait here and delay no other tenant's."""
        turn = self._turns.setdefault(tenant, asyncio.Semaphore(self._at_once_of_tenant))
        self._present[tenant] += 1
        try:
            yield turn
        finally:
            self._present -= Counter({tenant: 1})
            if tenant not in self._present:
                del self._turns[tenant]
