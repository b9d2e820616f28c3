"""A list as CSV (RFC 4180), streamed page by page, at most `MOST_ROWS` rows.

What a spreadsheet would take for a formula begins with an apostrophe, so that it is shown as text; also within a cell,
where one that separates by semicolons or tabs would begin another. Negative numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable

MOST_ROWS = 10_000
MOST_PAGES = 200
"""A page of what a filter leaves may have few rows, or none."""
MOST_SECONDS = 300.0
_FORMULA = frozenset("=+-@")
_NEGATIVE_NUMBER = re.compile(r"-[0-9]+(\.[0-9]+)?")
_MOVES_ON = ("\t", "\r", "\n")
"""What some spreadsheets read as the beginning of another cell, also before any text."""
_SEPARATORS = re.compile("([;\t\r\n])")


def escaped(text: str) -> str:
    cells = "".join(map(_shown_as_text, _SEPARATORS.split(text)))
    return f"'{cells}" if cells.startswith(_MOVES_ON) else cells


def rows(cells: Iterable[Iterable[str]]) -> bytes:
    """Rows in UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out)
    for row in cells:
        writer.writerow([escaped(text) for text in row])
    return out.getvalue().encode()


def _shown_as_text(text: str) -> str:
    return f"'{text}" if _begins_formula(text) and not _NEGATIVE_NUMBER.fullmatch(text) else text


def _begins_formula(text: str) -> bool:
    """The first character that is seen counts, and full-width signs count as the signs."""
    seen = next((character for character in text if not _is_unseen(character)), "")
    return unicodedata.normalize("NFKC", seen) in _FORMULA


def _is_unseen(character: str) -> bool:
    """A quotation mark, too: who separates otherwise than by commas takes it for the beginning of a quoted cell."""
    return (
        character == '"' or character.isspace() or unicodedata.category(character) in ("Cc", "Cf")
    )
