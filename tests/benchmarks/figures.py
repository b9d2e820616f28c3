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
class Bar:
    """What the median must reach, or with `at_most` must not pass."""

    limit: float
    at_most: bool = False

    def holds(self, series: Series) -> bool:
        return series.median <= self.limit if self.at_most else series.median >= self.limit

    def told(self, unit: str) -> str:
        return f"{'≤' if self.at_most else '≥'} {_number(self.limit)} {unit}"


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
    bar: Bar
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.bar.holds(self.judged)

    def __str__(self) -> str:
        beside = f", beside {self.beside}: {self.judged}" if self.beside else ""
        verdict = "pass" if self.passed else "FAIL"
        return f"{self.name}: {self.ours}{beside} [{self.bar.told(self.judged.unit)}] {verdict}"


def ratio(name: str, ours: Series, beside: Series, at_least: float, note: str = "") -> Figure:
    """Ours as a multiple of the other, round by round: what slows the machine down slows both."""
    ratios = tuple(a / b for a, b in zip(ours.values, beside.values, strict=True))
    return Figure(name, ours, beside, Series(ratios, TIMES), Bar(at_least), note)


def difference(name: str, ours: Series, beside: Series, at_most: float, note: str = "") -> Figure:
    """How much ours is above the other, round by round."""
    differences = tuple(a - b for a, b in zip(ours.values, beside.values, strict=True))
    return Figure(
        name, ours, beside, Series(differences, ours.unit), Bar(at_most, at_most=True), note
    )


def limited(name: str, ours: Series, at_most: float, note: str = "") -> Figure:
    return Figure(name, ours, None, ours, Bar(at_most, at_most=True), note)


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
