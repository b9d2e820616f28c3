"""Time as the bank counts it: days in New York, and the business days of the Federal Reserve."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator

NEW_YORK = ZoneInfo("America/New_York")
FIRST_DAY = date(2000, 1, 1)
LAST_DAY = date(2100, 12, 31)
"""The library knows no holidays after it."""

SATURDAY = 5
DAY = timedelta(days=1)


def today() -> date:
    return datetime.now(NEW_YORK).date()


def day_of(moment: datetime) -> date:
    return moment.astimezone(NEW_YORK).date()


def midnight(day: date) -> datetime:
    """The moment at which the day begins in New York."""
    return datetime.combine(day, time(), NEW_YORK).astimezone(UTC)


def is_business_day(day: date) -> bool:
    """Whether the Federal Reserve Banks are open.

    Their rule: a holiday on a Sunday is kept on the Monday after it; one on a Saturday closes no other day.
    """
    if day.weekday() >= SATURDAY or day in _holidays(day.year):
        return False
    yesterday = day - DAY
    return not (yesterday.weekday() > SATURDAY and yesterday in _holidays(yesterday.year))


def latest_business_day(day: date) -> date:
    """The day itself, or the last business day before it."""
    while not is_business_day(day):
        day -= DAY
    return day


@lru_cache(maxsize=256)
def _holidays(year: int) -> frozenset[date]:
    # With it comes every country of the world: 11 MiB and 0.2 s, for sweeps and settlements only.
    from holidays.countries.united_states import UnitedStates  # noqa: PLC0415

    return frozenset(UnitedStates(observed=False, years=year))  # type: ignore[no-untyped-call] # the library's


def _read_day(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError("write a day as YYYY-MM-DD")
    return date.fromisoformat(value)


def _known_day(day: date) -> date:
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ValueError(f"the bank knows days from {FIRST_DAY} to {LAST_DAY}")
    return day


def _read_moment(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("write a moment as text, like 2025-03-09T06:59:59Z")  # noqa: TRY004 - for pydantic
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("say the offset from UTC, or Z")
    return moment


def _known_moment(moment: datetime) -> datetime:
    if moment.year < FIRST_DAY.year - 1 or moment.year > LAST_DAY.year + 1:
        raise ValueError(f"the bank knows days from {FIRST_DAY} to {LAST_DAY}")
    _known_day(day_of(moment))
    return moment


Day = Annotated[date, BeforeValidator(_read_day), AfterValidator(_known_day)]
"""A day in New York, as YYYY-MM-DD."""

AnyDay = Annotated[date, BeforeValidator(_read_day)]
"""To filter by: a period may begin and end whenever, though nothing ever happened then."""

Moment = Annotated[datetime, BeforeValidator(_read_moment), AfterValidator(_known_moment)]
"""A date-time with its offset, as ISO 8601 has it."""
