"""Single flight: of concurrent calls about the same key one is made, and the others wait for it.

A hundred wires from an account whose owner is not cached yet ask for the owner once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from libs.contracts.errors import NotFound, Unavailable

AnswerT = TypeVar("AnswerT")


class SingleFlight(Generic[AnswerT]):
    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[AnswerT]] = {}

    async def run(
        self, key: Hashable, call: Callable[[], Awaitable[AnswerT]], deadline: float
    ) -> AnswerT:
        """What `call` returns or raises. It goes on when its first caller is cancelled: others may wait for it.

        Args:
            call: bounded by a deadline of its own. That of its first caller may be far earlier than those of others.
            deadline: until when this caller waits, in Unix seconds.

        Raises:
            Unavailable: there was no answer until the deadline.
        """
        try:
            async with asyncio.timeout(deadline - time.time()):
                return await self._run(key, call)
        except TimeoutError as error:
            raise Unavailable from error

    async def _run(self, key: Hashable, call: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        earlier = self._running.get(key)
        if earlier is not None:
            # The resource may have been created since that call: call again.
            with contextlib.suppress(NotFound):
                return await asyncio.shield(earlier)
        return await asyncio.shield(self._running.get(key) or self._start(key, call))

    def _start(
        self, key: Hashable, call: Callable[[], Awaitable[AnswerT]]
    ) -> asyncio.Task[AnswerT]:
        async def made() -> AnswerT:
            return await call()

        task = asyncio.create_task(made(), name=f"single-flight:{key}")
        self._running[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def _ended(self, key: Hashable, task: asyncio.Task[AnswerT]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # retrieved here, since all waiting callers may have been cancelled
