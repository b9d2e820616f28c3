"""What a benchmark finds: series of repeated rounds, and what is judged by its bar."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

TIMES = "×"  # noqa: RUF001 - the sign is meant


@dataclass(frozen=True)
class Series:
    """The values of repeated rounds, in `unit`."""

    values: tuple[float, ...]
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest."""
        return min(self.values), max(self.values)

    def __str__(self) -> str:
        low, high = self.spread
        only = low == high
        return f"{_number(self.median)} {self.unit}" + (
            "" if only else f" ({_number(low)}-{_number(high)})"
        )


@dataclass(frozen=True)
class Bounds:
    """What the median is judged by: at least so much, or with `at_most` at most.

    Args:
        goal: what is aimed for; missing it fails nothing.
        floor: what it was when it was last written down, with room for a busy machine; below it is a regression.
    """

    goal: float
    floor: float
    at_most: bool = False

    def reaches_goal(self, series: Series) -> bool:
        return self._holds(self.goal, series)

    def holds_floor(self, series: Series) -> bool:
        return self._holds(self.floor, series)

    def told(self, limit: float, unit: str) -> str:
        return f"{'≤' if self.at_most else '≥'} {_number(limit)} {unit}"

    def _holds(self, limit: float, series: Series) -> bool:
        return series.median <= limit if self.at_most else series.median >= limit


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Args:
        judged: the ratio or the difference of each round; the figure itself where nothing is beside it.
    """

    name: str
    ours: Series
    beside: Series | None
    judged: Series
    bounds: Bounds
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether it is no regression."""
        return self.bounds.holds_floor(self.judged)

    @property
    def goal(self) -> str:
        return self.bounds.told(self.bounds.goal, self.judged.unit)

    @property
    def floor(self) -> str:
        return self.bounds.told(self.bounds.floor, self.judged.unit)

    @property
    def verdict(self) -> str:
        if not self.passed:
            return "REGRESSION"
        return "goal reached" if self.bounds.reaches_goal(self.judged) else "below goal"

    def __str__(self) -> str:
        beside = f", beside {self.beside}: {self.judged}" if self.beside else ""
        return f"{self.name}: {self.ours}{beside} [goal {self.goal}, floor {self.floor}] {self.verdict}"


def ratio(
    name: str, ours: Series, beside: Series, *, goal: float, floor: float, note: str = ""
) -> Figure:
    """Ours as a multiple of the other, round by round: what slows the machine down slows both."""
    ratios = tuple(a / b for a, b in zip(ours.values, beside.values, strict=True))
    return Figure(name, ours, beside, Series(ratios, TIMES), Bounds(goal, floor), note)


def difference(
    name: str, ours: Series, beside: Series, *, goal: float, floor: float, note: str = ""
) -> Figure:
    """How much ours is above the other, round by round: at most so much."""
    differences = tuple(a - b for a, b in zip(ours.values, beside.values, strict=True))
    bounds = Bounds(goal, floor, at_most=True)
    return Figure(name, ours, beside, Series(differences, ours.unit), bounds, note)


def limited(name: str, ours: Series, *, goal: float, floor: float, note: str = "") -> Figure:
    """At most so much."""
    return Figure(name, ours, None, ours, Bounds(goal, floor, at_most=True), note)


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
