"""How late this process's event loop is: all that it does waits for as long."""

from __future__ import annotations

import asyncio
from typing import NoReturn

from prometheus_client import Histogram

TICK_SECONDS = 0.5

LAG_SECONDS = Histogram(
    "bankside_event_loop_lag_seconds",
    f"By how much a timer of the event loop came late, every {TICK_SECONDS:g} s.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


async def measure_for_ever() -> NoReturn:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        LAG_SECONDS.observe(max(0.0, loop.time() - due))
