from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pydantic import TypeAdapter, ValidationError

from services.provider_sandbox.calendar import (
    FIRST_DAY,
    LAST_DAY,
    SATURDAY,
    Day,
    Moment,
    day_of,
    is_business_day,
    latest_business_day,
    midnight,
)
from tests.support.with_each import with_each


def weekdays_of(year: int) -> list[date]:
    days = (date(year, 1, 1) + timedelta(number) for number in range(365))
    return [day for day in days if day.weekday() < SATURDAY]


@with_each(
    [
        ("2021-07-02", True),  # a Friday; Independence Day is the Sunday after it
        ("2021-07-05", False),  # the Monday on which it is kept
        ("2021-06-18", True),  # Juneteenth is a Saturday: the Friday before it is open
        ("2022-06-20", False),
        ("2021-12-24", True),
        ("2022-12-26", False),
        ("2021-12-31", True),
        ("2023-01-02", False),
        ("2025-11-27", False),
        ("2025-11-28", True),  # the day after Thanksgiving
        ("2025-10-13", False),
        ("2025-03-08", False),
        ("2025-03-09", False),
        ("2025-03-10", True),
        ("2100-07-05", False),
        ("2100-11-25", False),
    ]
)
def test_business_days_are_those_of_the_federal_reserve(case: tuple[str, bool]) -> None:
    day, is_open = case

    assert is_business_day(date.fromisoformat(day)) is is_open


def test_the_latest_business_day_reaches_back_over_a_long_weekend() -> None:
    assert latest_business_day(date(2021, 7, 5)) == date(2021, 7, 2)
    assert latest_business_day(date(2021, 7, 6)) == date(2021, 7, 6)


def test_the_holidays_of_every_year_that_has_days_are_known() -> None:
    years = range(FIRST_DAY.year, LAST_DAY.year + 1)

    without = [year for year in years if all(map(is_business_day, weekdays_of(year)))]

    assert without == []


@pytest.mark.parametrize(
    ("day", "begins"),
    [
        (date(2025, 3, 9), datetime(2025, 3, 9, 5, tzinfo=UTC)),
        (date(2025, 3, 10), datetime(2025, 3, 10, 4, tzinfo=UTC)),
        (date(2025, 11, 2), datetime(2025, 11, 2, 4, tzinfo=UTC)),
        (date(2025, 11, 3), datetime(2025, 11, 3, 5, tzinfo=UTC)),
    ],
)
def test_a_day_begins_at_midnight_in_new_york(day: date, begins: datetime) -> None:
    assert midnight(day) == begins
    assert day_of(begins) == day


@with_each(["20250309", "2025-3-9", "2025-02-30", "1999-12-31", "2101-01-01", "", 1, None], repr)
def test_nothing_else_is_a_day(wrong: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Day).validate_python(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        "2025-03-09T01:00:00",
        "yesterday",
        "1999-12-31T00:00:00Z",
        "0001-01-01T00:00:00Z",
        1741500000,
        None,
    ],
)
def test_nothing_else_is_a_moment(wrong: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Moment).validate_python(wrong)
