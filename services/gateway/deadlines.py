"""Deadlines of requests under way, which a stop of the process brings forward.

A stop leaves requests less time than their own deadlines may: what still waits then would be cut without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from libs.contracts.errors import BanksideError

T = TypeVar("T")


class Deadlines:
    """The deadlines of one process's requests."""

    def __init__(self) -> None:
        self._last: float | None = None
        """By the event loop's clock; None until the process stops."""
        self._under_way: set[asyncio.Timeout] = set()

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
        deadline = self._last
        if seconds is not None:
            own = asyncio.get_running_loop().time() + seconds
            deadline = own if deadline is None else min(own, deadline)
        timeout = asyncio.timeout_at(deadline)
        try:
            async with timeout:
                self._under_way.add(timeout)
                return await work
        except TimeoutError:
            if timeout.expired():
                raise late() from None
            raise
        finally:
            self._under_way.discard(timeout)

    def bring_forward(self, seconds: float) -> None:
        """From now on, no request has more than these seconds from now."""
        self._last = last = asyncio.get_running_loop().time() + seconds
        for timeout in self._under_way:
            deadline = timeout.when()
            if not timeout.expired() and (deadline is None or deadline > last):
                timeout.reschedule(last)
