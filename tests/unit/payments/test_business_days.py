"""Business days are those of the Federal Reserve, and approvals wait for so many."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from holidays.countries.united_states import UnitedStates

from services.payments.business_days import SATURDAY, after_business_days, is_business_day

FIRST_YEAR = 2022
"""The first whole year with Juneteenth, which our rules have in each year."""
LAST_YEAR = 2100
"""The library knows none later."""


@pytest.mark.parametrize(
    ("day", "open_"),
    [
        (date(2026, 11, 26), False),  # Thanksgiving
        (date(2026, 11, 27), True),
        (date(2026, 11, 28), False),  # a Saturday
        (date(2026, 7, 3), True),  # the Friday before a holiday on a Saturday
        (date(2027, 7, 5), False),  # the Monday after a holiday on a Sunday
    ],
)
def test_the_bank_is_closed_as_the_federal_reserve_is(day: date, open_: bool) -> None:
    assert is_business_day(day) is open_


def test_an_approval_waits_for_business_days_at_the_same_time_of_day() -> None:
    begun = datetime(2026, 10, 30, 15, 0, tzinfo=UTC)  # a Friday; clocks go back on November 1

    assert after_business_days(begun, 5) == datetime(2026, 11, 6, 16, 0, tzinfo=UTC)


def test_the_holidays_are_those_of_the_library_which_the_sandbox_asks() -> None:
    years = range(FIRST_YEAR, LAST_YEAR + 1)
    holidays = set(UnitedStates(observed=False, years=years))  # type: ignore[no-untyped-call] # the library's
    first, after = date(FIRST_YEAR, 1, 1), date(LAST_YEAR + 1, 1, 1)
    days = [first + timedelta(days=number) for number in range((after - first).days)]

    closed = {day for day in days if day.weekday() < SATURDAY and not is_business_day(day)}

    kept = {day + timedelta(days=1) if day.isoweekday() == 7 else day for day in holidays}
    assert closed == {day for day in kept if day.weekday() < SATURDAY and day < after}
