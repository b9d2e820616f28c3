"""The retry schedule: when a delivery is attempted again after a failed attempt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from services.webhook_dispatcher.engine.rules import POST_SECONDS
from services.webhook_dispatcher.ports import LONGEST_RETRY_AFTER

DAY_SECONDS = 86_400
JITTER = 0.2

Random = Callable[[], float]
"""At least 0, less than 1."""


def next_attempt_at(
    retry_seconds: Sequence[float],
    attempts_made: int,
    ended_at: datetime,
    retry_after: datetime | None,
    random: Random,
) -> datetime | None:
    """The moment of the next attempt; None when the one that failed was the last.

    Args:
        retry_seconds: the pause after the first, second, … attempt, each ±20 %.
        attempts_made: since the schedule began, the failed one included.
        retry_after: of the answer, at most `LONGEST_RETRY_AFTER` later. It makes the pause longer than the schedule's.
    """
    if attempts_made > len(retry_seconds):
        return None
    seconds = pause(retry_seconds[attempts_made - 1], random)
    if retry_after is not None:
        seconds = max(seconds, (retry_after - ended_at).total_seconds())
    return ended_at + timedelta(seconds=seconds)


def pause(seconds: float, random: Random) -> float:
    """±20 %, so that what failed together does not come back together."""
    return seconds * (1 - JITTER + 2 * JITTER * random())


def whole_seconds(retry_seconds: Sequence[float]) -> float:
    """The longest time from the first attempt to the last."""
    return sum(retry_seconds) * (1 + JITTER)


def longest_seconds(retry_seconds: Sequence[float]) -> float:
    """The longest time from the first attempt to the end of the last, of an endpoint whose answers ask for the longest
    pause each time. An open circuit breaker makes it longer.
    """
    asked = LONGEST_RETRY_AFTER.total_seconds()
    pauses = (max(pause * (1 + JITTER), asked) for pause in retry_seconds)
    return sum(pauses) + (len(retry_seconds) + 1) * POST_SECONDS


def longest_days(retry_seconds: Sequence[float]) -> int:
    """As `longest_seconds`, in whole days."""
    return math.ceil(longest_seconds(retry_seconds) / DAY_SECONDS)
