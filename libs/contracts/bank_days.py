"""Days at the bank."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

BANK_ZONE = ZoneInfo("America/New_York")
"""The bank's time zone: dates in filters and periods are dates there (interface §4)."""


def today_at_the_bank() -> date:
    return datetime.now(BANK_ZONE).date()
