"""Counting what waits for a person, bounded, with the time of the oldest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.operating.overview import MOST_COUNTED, WaitingKind

Counted = tuple[WaitingKind, int, datetime | None]
"""How many wait, at most `MOST_COUNTED`, and since when the oldest of them, where that is known."""
CountWaiting = Callable[[AsyncConnection], Awaitable[Counted]]


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
