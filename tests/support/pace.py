"""How much longer things take here and now than on the quiet machine for which the tests' deadlines are written.

A deadline of a test says "something is stuck", not "this is slow": speed is what benchmarks measure. So deadlines are
multiplied by `pace()`, which is how slow this processor is times how many runnable processes share each of its cores.

Runs of `make recovery`, whose subject is recovery in time, take every deadline as it is written.
"""

from __future__ import annotations

import math
import os
import time
from functools import cache

LOOP = 200_000
LOOP_SECONDS = 0.006
"""Processor time of `LOOP` additions on the machine for which the deadlines are written."""
SLOWEST = 6.0
IS_STRICT = "BANKSIDE_TEST_STRICT" in os.environ


@cache
def _slowness() -> float:
    """Of the processor: 1 and more."""

    def measure() -> float:
        began = time.process_time()
        total = 0
        for number in range(LOOP):
            total += number
        return time.process_time() - began

    return max(1.0, min(measure() for _ in range(5)) / LOOP_SECONDS)


# Each worker measures while all run, not the quiet template that the workers are forked from.
os.register_at_fork(after_in_child=_slowness.cache_clear)


def pace() -> float:
    """By how much to multiply a deadline: 1 on a quiet machine, never more than `SLOWEST`."""
    if IS_STRICT:
        return 1.0
    cores = len(os.sched_getaffinity(0))
    crowding = max(1.0, os.getloadavg()[0] / cores)
    return min(SLOWEST, _slowness() * crowding)


def waiting_pace() -> float:
    """By how much to multiply a setting of the service for which callers wait, as a deadline of the gateway.

    Less than `pace()`, for every test that lets it pass waits for it: an answer takes a part of such a time on a quiet
    machine.
    """
    return math.sqrt(pace())
