"""Wait for a condition, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

EVENTUALLY_SECONDS = 20.0
POLL_SECONDS = 0.05


async def eventually(
    what: str,
    attempt: Callable[[], Awaitable[T | None]],
    seconds: float = EVENTUALLY_SECONDS,
) -> T:
    """The first result of `attempt` that is true. An AssertionError of it counts as not yet."""
    deadline = time.monotonic() + seconds
    last: object = None
    while True:
        try:
            result = await attempt()
        except AssertionError as error:
            last = error
        else:
            if result:
                return result
            last = result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last: {last}")
        await asyncio.sleep(POLL_SECONDS)
