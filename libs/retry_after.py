"""When an answer asks to be tried again: the Retry-After header (RFC 9110 §10.2.3), as far as it makes sense."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,64}")
_DATE = re.compile(r"[A-Za-z]{3,9},? [A-Za-z0-9 :-]{16,26}")


def retry_after(value: str | None, now: datetime, longest: timedelta) -> datetime | None:
    """The time that a header names, after `now` and at most `longest` later; None when it says nothing usable.

    Args:
        value: seconds, or a date in one of the three forms of HTTP.
    """
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        digits = value.lstrip("0")
        later = longest if len(digits) > 6 else timedelta(seconds=int(digits or "0"))
    elif _DATE.fullmatch(value):
        try:
            date = parsedate_to_datetime(value)
            later = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
        except (ValueError, OverflowError):
            return None
    else:
        return None
    return now + min(later, longest) if later > timedelta(0) else None
