"""The rule of a period that is given by its first and last day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from libs.contracts.fields import CalendarDate
from libs.contracts.model import BrokenRule

_DAY: TypeAdapter[Any] = TypeAdapter(CalendarDate)


def broken_period(
    values: Mapping[str, Any], first: str = "start_date", last: str = "end_date"
) -> list[BrokenRule]:
    """Broken when the last day is before the first; of values that are no days nothing more is said."""
    try:
        start, end = (_DAY.validate_python(values.get(name)) for name in (first, last))
    except ValidationError:
        return []
    return [((last,), "the end date is before the start date")] if end < start else []
