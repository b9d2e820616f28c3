"""Deadlines of requests under way, which a stop of the process brings forward.

A stop leaves requests less time than their own deadlines may: what still waits then would be cut without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from libs.contracts.errors import BanksideError

T = TypeVar("T")


class RequestDeadlines:
    """The deadlines of one process's requests."""

    def __init__(self) -> None:
        self._last: float | None = None
        """By the event loop's clock; None until the process stops."""
        self._under_way: set[asyncio.Timeout] = set()
        self._brought_forward = asyncio.Event()

    @asynccontextmanager
    async def limit(self, seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
        """`asyncio.timeout`, which ends earlier when the process stops."""
        deadline = self._last
        if seconds is not None:
            own = asyncio.get_running_loop().time() + seconds
            deadline = own if deadline is None else min(own, deadline)
        async with asyncio.timeout_at(deadline) as timeout:
            self._under_way.add(timeout)
            try:
                yield timeout
            finally:
                self._under_way.discard(timeout)

    async def within(
        self,
        seconds: float | None,
        work: Coroutine[Any, Any, T],
        late: Callable[[], BanksideError],
    ) -> T:
        """The result of `work`, which is cancelled after `seconds`, or earlier when the process stops.

        Args:
            seconds: None for work that has a deadline of its own, which tells more of what became of it.

        Raises:
            BanksideError: made by `late`; there is no result in time.
        """
        timeout: asyncio.Timeout | None = None
        try:
            async with self.limit(seconds) as timeout:
                return await work
        except TimeoutError:
            if timeout is not None and timeout.expired():
                raise late() from None
            raise

    def bring_forward(self, seconds: float) -> None:
        """From now on, no request has more than these seconds from now."""
        self._last = last = asyncio.get_running_loop().time() + seconds
        for timeout in self._under_way:
            deadline = timeout.when()
            if not timeout.expired() and (deadline is None or deadline > last):
                timeout.reschedule(last)
        self._brought_forward.set()

    async def until_last(self, ahead_seconds: float) -> None:
        """Wait until the process stops, and then until `ahead_seconds` before the last deadline of its requests."""
        await self._brought_forward.wait()
        assert self._last is not None
        await asyncio.sleep(self._last - ahead_seconds - asyncio.get_running_loop().time())
