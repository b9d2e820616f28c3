"""The days of Increase's periods, of statements and of interest."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

NEAR_MIDNIGHT = timedelta(hours=12)
"""A period begins and ends at midnight, UTC or the bank's, or a second before: this long before its end is its last
day.
"""


def last_day(end: datetime) -> date:
    """Of a period with this end."""
    return (end.astimezone(UTC) - NEAR_MIDNIGHT).date()
