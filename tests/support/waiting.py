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
POLLS_MORE_RARELY = 0.03
"""As a part of the time waited so far: attempts of long waits cost the processor that others wait for."""


async def eventually(
    what: str,
    attempt: Callable[[], Awaitable[T | None]],
    seconds: float = EVENTUALLY_SECONDS,
    poll_seconds: float = POLL_SECONDS,
) -> T:
    """The first result of `attempt` that is true. An AssertionError of it counts as not yet.

    Args:
        seconds: on a quiet machine; see `pace`.
        poll_seconds: at least, between two attempts; longer where each starts a process.
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
        waited = time.monotonic() - began
        if waited > seconds * pace():
            raise AssertionError(f"not within {waited:.0f} s: {what}; last: {last}")
        await asyncio.sleep(max(poll_seconds, POLLS_MORE_RARELY * waited))
