"""Tasks on the database that a service repeats beside its work: measuring, purging, writing what it has counted.

None of them ends because the database cannot be used for a while. What is to become of work in an outage decides which
of these is called:

| work | |
|---|---|
| is done once, and may be left out | `tolerating_outage` |
| has to be done before the caller goes on | `until_available` (`libs.persistence.retries`) |
| is repeated for ever | `repeat` |
| is tried again by a loop of its own, whose log is throttled | `OutageLog` (`libs.handling.outage_log`) |
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

import structlog

from libs.persistence.availability import is_away

Act = Callable[[], Awaitable[object]]

FIRST_WITHIN_SECONDS = 2.0
"""The first calls of all tasks of a service are spread over this time: at once, each would take a new connection, and
replicas that are started together would all ask for the same.
"""


async def repeat(
    name: str,
    act: Act,
    pause_seconds: float,
    *,
    times_its_duration: float = 0.0,
    longest_pause_seconds: float = math.inf,
) -> NoReturn:
    """Call `act` soon, and again after each pause, for ever.

    Args:
        name: of the logger.
        pause_seconds: between the end of a call and the next call. The first call is within a fifth of it, and within
            `FIRST_WITHIN_SECONDS`.
        times_its_duration: the pause is at least this many times as long as the call took, for a statement that takes
            longer the more rows there are.
        longest_pause_seconds: the pause after a call that took long is no longer than this: the call may have waited
            for a database that stood still.
    """
    first_within = min(FIRST_WITHIN_SECONDS, pause_seconds / 5)
    await asyncio.sleep(random.uniform(0, first_within))  # noqa: S311 - no secret
    while True:
        began = time.monotonic()
        await tolerating_outage(name, act)
        took = time.monotonic() - began
        after_long = min(took * times_its_duration, longest_pause_seconds)
        await asyncio.sleep(max(pause_seconds, after_long))


async def tolerating_outage(name: str, act: Act) -> None:
    """Call `act`. Log an error of it which means that the database cannot be used now; raise the others."""
    try:
        await act()
    except Exception as error:
        if not is_away(error):
            raise
        structlog.get_logger(name).warning("database_away")
