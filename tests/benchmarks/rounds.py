"""Measuring two sides in alternating rounds, so that what the machine does meanwhile strikes both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.benchmarks.figures import Series

Measure = Callable[[int], Awaitable[float]]
"""Works for so many seconds; the rate or the time that was found."""


@dataclass(frozen=True)
class Plan:
    """How long to measure: `rounds` of each side, of `seconds` each, after one of `warm_up_seconds`."""

    rounds: int = 5
    seconds: int = 3
    warm_up_seconds: int = 2
    pause_seconds: float = 0.5
    """Between two rounds: for what the one before left under way."""


async def alternate(plan: Plan, unit: str, ours: Measure, beside: Measure) -> tuple[Series, Series]:
    """A B, B A, A B, …: a machine that grows slower all the time favours neither."""
    for measure in (ours, beside):
        await measure(plan.warm_up_seconds)
    found: dict[Measure, list[float]] = {ours: [], beside: []}
    for number in range(plan.rounds):
        for measure in (ours, beside) if number % 2 == 0 else (beside, ours):
            await asyncio.sleep(plan.pause_seconds)
            found[measure].append(await measure(plan.seconds))
    return Series(tuple(found[ours]), unit), Series(tuple(found[beside]), unit)
