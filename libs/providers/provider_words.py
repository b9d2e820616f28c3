"""A provider's own words, made fit to be stored and shown. Its sentence may repeat what it was sent."""

from __future__ import annotations

import re

LONGEST_WORDS = 255

_NUMBER = re.compile(r"\d(?:[\W_]{0,3}\d){3,}")


def one_line(text: str) -> str:
    """At most `LONGEST_WORDS` characters; a question mark replaces each character that cannot be printed."""
    return "".join(c if c.isprintable() else "?" for c in text[:LONGEST_WORDS])


def without_numbers(text: str) -> str:
    """An ellipsis replaces each number of four digits or more, however it is grouped: no tax or account number is left,
    and no date that is written in digits.
    """
    return _NUMBER.sub("…", text)
