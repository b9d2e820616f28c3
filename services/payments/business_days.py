"""Business days of the bank: those on which Fedwire is open."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache

from libs.contracts.fields import BANK_ZONE

SATURDAY = 5


def after_business_days(moment: datetime, days: int) -> datetime:
    """The same time of day at the bank, so many business days later."""
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
    # It takes 7 MiB, and is needed for the first wire that waits for approval.
    from holidays.countries.united_states import UnitedStates  # noqa: PLC0415

    return frozenset(UnitedStates(observed=False, years=year))  # type: ignore[no-untyped-call] # the library's
