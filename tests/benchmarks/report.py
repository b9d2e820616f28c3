"""Figures as a table for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.benchmarks.figures import Figure, Series


def show(figures: Sequence[Figure], machine: dict[str, str]) -> None:
    table = Table(title="median (lowest-highest) of the rounds")
    for column in ("key", "ours", "beside", "judged", "goal", "floor", "", "note"):
        table.add_column(column)
    for figure in figures:
        table.add_row(
            figure.name,
            str(figure.ours),
            str(figure.beside or ""),
            str(figure.judged),
            figure.goal,
            figure.floor,
            figure.verdict if figure.passed else f"[bold red]{figure.verdict}[/]",
            figure.note,
        )
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    console.print("; ".join(f"{name} {value}" for name, value in machine.items()))


def as_json(figures: Sequence[Figure], machine: dict[str, str]) -> dict[str, Any]:
    return {"machine": machine, "figures": [_figure(figure) for figure in figures]}


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "key": figure.name,
        "ours": _series(figure.ours),
        "beside": _series(figure.beside) if figure.beside else None,
        "judged": _series(figure.judged),
        "bounds": asdict(figure.bounds),
        "verdict": figure.verdict,
        "passed": figure.passed,
        "note": figure.note,
    }


def _series(series: Series) -> dict[str, Any]:
    return {"unit": series.unit, "median": series.median, "values": series.values}
