"""Wait for a condition, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.support.pace import pace

T = TypeVar("T")

EVENTUALLY_SECONDS = 20.0
POLL_SECONDS = 0.05


async def eventually(
    what: str,
    attempt: Callable[[], Awaitable[T | None]],
    seconds: float = EVENTUALLY_SECONDS,
) -> T:
    """The first result of `attempt` that is true. An AssertionError of it counts as not yet.

    Args:
        seconds: on a quiet machine; see `pace`.
    """
    began = time.monotonic()
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
        if time.monotonic() - began > seconds * pace():
            raise AssertionError(
                f"not within {time.monotonic() - began:.0f} s: {what}; last: {last}"
            )
        await asyncio.sleep(POLL_SECONDS)
