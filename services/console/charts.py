"""Small charts: points of SVG lines, computed here and drawn by templates/_charts.html without styles of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

WIDTH, HEIGHT = 240, 48
_MARGIN = 2.0
_DOT = 2.0
"""Half the width of a line that has one point only."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A line over time.

    Args:
        area: of the polygon below it.
        latest: the last value with its unit; since when it is not known, where it is an earlier one; or that it had
            nothing to measure.
        highest: the highest value with its unit.
    """

    id: str
    title: str
    line: str
    area: str
    latest: str
    highest: str
    is_empty: bool


def chart(
    identifier: str,
    title: str,
    values: Sequence[float | None],
    times: Sequence[datetime],
    unit: str = "",
    *,
    nothing: str = "",
) -> Chart:
    """A line chart of the values, as coordinates for the template.

    Args:
        values: at equal distances, the oldest first; None where nothing was measured.
        times: of the values.
        nothing: what is said of the last value where there was nothing to measure; empty where None is not known.
    """
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    points = [
        (_across(index, len(values)), _up(value, top))
        for index, value in enumerate(values)
        if value is not None
    ]
    if len(points) == 1:
        [(x, y)] = points
        points = [(max(0.0, x - _DOT), y), (min(float(WIDTH), x + _DOT), y)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = f"{points[0][0]:.1f},{HEIGHT} {line} {points[-1][0]:.1f},{HEIGHT}" if points else ""
    return Chart(
        identifier,
        title,
        line,
        area,
        nothing if nothing and values[-1:] == [None] else _latest(values, times, unit),
        _said(top, unit) if known else "no data",
        is_empty=not points,
    )


def _across(index: int, count: int) -> float:
    return index / max(1, count - 1) * WIDTH


def _up(value: float, top: float) -> float:
    room = HEIGHT - 2 * _MARGIN
    return HEIGHT - _MARGIN - (value / top * room if top else 0.0)


def _latest(values: Sequence[float | None], times: Sequence[datetime], unit: str) -> str:
    known = [(number, value) for number, value in enumerate(values) if value is not None]
    if not known:
        return "no data"
    number, value = known[-1]
    if number + 1 == len(values):
        return _said(value, unit)
    return f"not known since {times[number + 1].astimezone(UTC):%H:%M}"


def _said(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
    return f"{number} {unit}".strip()
