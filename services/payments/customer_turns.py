"""At most one wire of a customer at a time is checked against its limits in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class CustomerTurns:
    """Bulkhead: at most one wire of a customer at a time uses a database connection for its limits. The others would
    wait there for the lock of the customer's limits (`policies.lock_limits`).
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, tenant: str, customer_id: str) -> AsyncIterator[None]:
        key = (tenant, customer_id)
        lock = self._locks.get(key)
        if lock is None:
            self._locks[key] = lock = asyncio.Lock()
        async with lock:
            yield
