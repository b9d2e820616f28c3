"""Single flight: of concurrent calls about the same key one is made, and the others wait for it.

A hundred wires from an account whose owner is not cached yet ask for the owner once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable

from libs.contracts.errors import NotFound


class SingleFlight:
    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, key: Hashable, call: Callable[[], Awaitable[None]]) -> None:
        """Raises what `call` raises. The call goes on when its first caller is cancelled: others may wait for it."""
        earlier = self._running.get(key)
        if earlier is not None:
            with contextlib.suppress(NotFound):  # it may have been made since
                await asyncio.shield(earlier)
                return
        await asyncio.shield(self._running.get(key) or self._start(key, call))

    def _start(self, key: Hashable, call: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def made() -> None:
            await call()

        task = asyncio.create_task(made(), name=f"single-flight:{key}")
        self._running[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def _ended(self, key: Hashable, task: asyncio.Task[None]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # retrieved here, since all waiting callers may have been cancelled
