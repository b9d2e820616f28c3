"""Counting what waits for a person, bounded, with the time of the oldest: for the overview, and as a metric."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NoReturn

from prometheus_client import Gauge
from sqlalchemy import ColumnElement, func, select

from libs.contracts.operating.overview import MOST_COUNTED, WaitingKind
from libs.handling.periodic import repeat
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database

Counted = tuple[WaitingKind, int, datetime | None]
"""How many wait, at most `MOST_COUNTED`, and since when the oldest of them, where that is known."""
CountWaiting = Callable[[AsyncConnection], Awaitable[Counted]]

MEASURE_SECONDS = 30.0

WAITING = Gauge(
    "bankside_waiting",
    f"What waits for a person, by kind, as the overview of operators counts it: {MOST_COUNTED} at most.",
    ["kind"],
)


async def measure_for_ever(database: Database, counts: Sequence[CountWaiting]) -> NoReturn:
    async def measure() -> None:
        async with database.transaction() as connection:
            counted = [await count(connection) for count in counts]
        for kind, count, _ in counted:
            WAITING.labels(kind.value).set(count)

    await repeat("metrics", measure, MEASURE_SECONDS)


def counting(
    kind: WaitingKind, since: ColumnElement[Any], *waits: ColumnElement[bool]
) -> CountWaiting:
    """Count the rows of a table that wait; an index should find these.

    Args:
        since: a column of the table: from when a row waits.
        waits: the conditions.
    """
    oldest = (
        select(since.label("since")).where(*waits).order_by(since).limit(MOST_COUNTED).subquery()
    )
    statement = select(func.count(), func.min(oldest.c.since)).select_from(oldest)

    async def count(connection: AsyncConnection) -> Counted:
        row = (await connection.execute(statement)).one()
        return kind, row[0], row[1]

    return count
