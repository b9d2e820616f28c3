"""Joining calls: of concurrent calls about the same key, those that came while one was being made share the next one.

Unlike a single flight, what a caller gets was begun after it asked: it sees what was there when it asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

ResultT = TypeVar("ResultT")


class JoinedCalls(Generic[ResultT]):
    """Each call goes on when its callers are cancelled, until `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: dict[str, asyncio.Task[ResultT]] = {}
        self._next: dict[str, asyncio.Task[ResultT]] = {}

    async def run(self, key: str, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What a call gives that is begun now or later. Raises what it raises."""
        if key in self._next:
            task = self._next[key]
        elif key in self._running:
            task = self._next[key] = self._start(key, self._after(key, self._running[key], call))
        else:
            task = self._running[key] = self._start(key, _made(call))
        return await asyncio.shield(task)

    async def join(self, key: str, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What the call under way gives, else one that is begun now."""
        if key not in self._running:
            return await self.run(key, call)
        return await asyncio.shield(self._running[key])

    def __len__(self) -> int:
        return len(self._running)

    async def close(self) -> None:
        """Cancel the calls under way and wait for their ends."""
        tasks = [*self._running.values(), *self._next.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, key: str, call: Coroutine[Any, Any, ResultT]) -> asyncio.Task[ResultT]:
        task = asyncio.create_task(call, name=f"{self._name}:{key}")
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    async def _after(
        self, key: str, earlier: asyncio.Task[ResultT], call: Callable[[], Awaitable[ResultT]]
    ) -> ResultT:
        with contextlib.suppress(Exception):
            await asyncio.shield(earlier)
        self._running[key] = self._next.pop(key)
        return await call()

    def _ended(self, key: str, task: asyncio.Task[ResultT]) -> None:
        for tasks in (self._running, self._next):
            if tasks.get(key) is task:
                del tasks[key]
        if not task.cancelled():
            task.exception()  # retrieved here, since all waiting callers may have been cancelled


async def _made(call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    return await call()
