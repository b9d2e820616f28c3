"""The days of Increase's periods, of statements and of interest."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

NEAR_MIDNIGHT = timedelta(hours=12)
"""A period begins and ends at midnight, UTC or the bank's, or a second before: this long after its beginning is its
first day, and this long before its end its last.
"""


def first_day(start: datetime) -> date:
    """Of a period with this beginning."""
    return (start.astimezone(UTC) + NEAR_MIDNIGHT).date()


def last_day(end: datetime) -> date:
    """Of a period with this end."""
    return (end.astimezone(UTC) - NEAR_MIDNIGHT).date()
