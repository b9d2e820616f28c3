"""A list as CSV (RFC 4180), streamed page by page, at most `MOST_ROWS` rows.

A cell that a spreadsheet would take for a formula begins with an apostrophe, so that it is shown as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

MOST_ROWS = 10_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escaped(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def rows(cells: Iterable[Iterable[str]]) -> bytes:
    """Rows in UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out)
    for row in cells:
        writer.writerow([escaped(text) for text in row])
    return out.getvalue().encode()
