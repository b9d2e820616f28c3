"""Business days of the bank: those on which Fedwire is open.

The holidays are computed here since a library's come with 12 MiB and a pause of 0.13 s at the first wire that waits for
approval. The tests compare them with that library's.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from libs.contracts.bank_days import BANK_ZONE

MONDAY, THURSDAY, SATURDAY = 0, 3, 5
"""As `date.weekday` counts."""


def after_business_days(moment: datetime, days: int) -> datetime:
    """The same time of day at the bank, `days` business days later."""
    local = moment.astimezone(BANK_ZONE)
    day = local.date()
    for _ in range(days):
        day += timedelta(days=1)
        while not is_business_day(day):
            day += timedelta(days=1)
    return datetime.combine(day, local.time(), BANK_ZONE).astimezone(moment.tzinfo)


def is_business_day(day: date) -> bool:
    """Whether it is neither a weekend nor a holiday of the Federal Reserve, which keeps a holiday that falls on a
    Sunday on the Monday after it, and one that falls on a Saturday not at all.
    """
    if day.weekday() >= SATURDAY or day in _holidays(day.year):
        return False
    yesterday = day - timedelta(days=1)
    return not (yesterday.weekday() > SATURDAY and yesterday in _holidays(yesterday.year))


@lru_cache(maxsize=8)
def _holidays(year: int) -> frozenset[date]:
    """Those of the Federal Reserve Banks, which are those of 5 U.S.C. 6103 since 2021."""
    return frozenset(
        (
            date(year, 1, 1),  # New Year's Day
            _weekday(MONDAY, 3, year, 1),  # Birthday of Martin Luther King, Jr.
            _weekday(MONDAY, 3, year, 2),  # Washington's Birthday
            _weekday(MONDAY, 1, year, 6) - timedelta(weeks=1),  # Memorial Day: the last of May
            date(year, 6, 19),  # Juneteenth
            date(year, 7, 4),  # Independence Day
            _weekday(MONDAY, 1, year, 9),  # Labor Day
            _weekday(MONDAY, 2, year, 10),  # Columbus Day
            date(year, 11, 11),  # Veterans Day
            _weekday(THURSDAY, 4, year, 11),  # Thanksgiving Day
            date(year, 12, 25),  # Christmas Day
        )
    )


def _weekday(weekday: int, number: int, year: int, month: int) -> date:
    """The first, second, … of these weekdays in the month."""
    first = date(year, month, 1)
    return first + timedelta(days=(weekday - first.weekday()) % 7, weeks=number - 1)
