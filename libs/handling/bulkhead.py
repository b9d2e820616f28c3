"""A bulkhead: a bounded number of calls run and a bounded number wait, so that one kind of work cannot use up a
process's capacity.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from libs.contracts.errors import Unavailable

Turn = Callable[[], AbstractAsyncContextManager[None]]
"""Enters one part of a call: waits until it may run, and its body is the part."""


class Bulkhead:
    """Bounds the calls of one kind of work.

    Args:
        at_once: the most calls that run.
        waiting: the most that wait besides; one tenant may have half of these besides its `at_once_of_tenant`.
        at_once_of_tenant: the most of one tenant that run; `at_once` unless given.
    """

    def __init__(self, at_once: int, waiting: int, *, at_once_of_tenant: int | None = None) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._at_once_of_tenant = at_once_of_tenant or at_once
        self._at_most = at_once + waiting
        self._of_tenant_at_most = self._at_once_of_tenant + (waiting + 1) // 2
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._present = Counter[str]()
        """By tenant, its calls that wait or run: its semaphore is kept while it has any."""

    @asynccontextmanager
    async def slot(self, tenant: str) -> AsyncIterator[None]:
        """Wait until a call of the tenant may run; the body is the call. Raises Unavailable, as `place`."""
        async with self.place(tenant) as turn, turn():
            yield

    @asynccontextmanager
    async def place(self, tenant: str) -> AsyncIterator[Turn]:
        """The body is a call that runs in parts, each in a turn of its own. Other calls run between the parts, and the
        call keeps its place: none of its turns is refused.

        Raises:
            Unavailable: as many calls as may are waiting, in all or of this tenant.
        """
        if self.is_full(tenant):
            raise Unavailable
        turn = self._turns.setdefault(tenant, asyncio.Semaphore(self._at_once_of_tenant))
        self._present[tenant] += 1
        try:
            yield partial(self._run, turn)
        finally:
            self._present -= Counter({tenant: 1})
            if tenant not in self._present:
                del self._turns[tenant]

    def is_full(self, tenant: str) -> bool:
        """Whether a further call of the tenant would be refused."""
        is_full = self._present.total() >= self._at_most
        return is_full or self._present[tenant] >= self._of_tenant_at_most

    @asynccontextmanager
    async def _run(self, of_tenant: asyncio.Semaphore) -> AsyncIterator[None]:
        """Calls beyond `at_once_of_tenant` wait for their tenant's own semaphore: they delay no other tenant's."""
        async with of_tenant, self._free:
            yield
