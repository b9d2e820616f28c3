"""Text in the characters that wires carry, and Increase's words about them."""

# ruff: noqa: RUF001 - typographic signs are what is replaced here.

from __future__ import annotations

import re
import unicodedata

from libs.providers.increase.wires import Wire

_NOT_CARRIED = re.compile(r"""[^ a-zA-Z0-9.?!,;:_/@\\&'"`~()<>#%+\-=$]""")
_WRITTEN_AS = str.maketrans(
    {
        "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "ß": "ss", "ẞ": "SS",
        "Þ": "Th", "þ": "th", "Ð": "D", "ð": "d", "Đ": "D", "đ": "d", "Ł": "L", "ł": "l",
        "Ħ": "H", "ħ": "h", "ı": "i", "‘": "'", "’": "'", "‚": ",", "‛": "'", "“": '"', "”": '"',
        "„": '"', "«": '"', "»": '"', "‹": "<", "›": ">", "‐": "-", "‑": "-", "‒": "-", "–": "-",
        "—": "-", "―": "-", "−": "-", "…": "...", "•": "-", "·": ".", "×": "x", "÷": "/", "⁄": "/",
        "€": "EUR", "£": "GBP", "¥": "JPY", "¢": "c", "§": "Sec.", "°": "deg", "№": "No.",
        "[": "(", "]": ")", "{": "(", "}": ")", "|": "/", "*": "-", "^": "-",
    }
)  # fmt: skip

UNEXPLAINED = frozenset({"canceled", "rejected"})
"""Statuses of which Increase does not say why: its word for the status is all there is."""


def wire_text(text: str, longest: int) -> str:
    """The text without accents, ligatures and typographic signs; `?` for what has no equivalent. Never empty.

    Args:
        longest: the text is cut to this many characters.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_WRITTEN_AS))
    base = "".join(c for c in plain if not unicodedata.combining(c))
    carried = _NOT_CARRIED.sub("?", re.sub(r"\s+", " ", base.translate(_WRITTEN_AS)))
    return carried[:longest].strip() or "?"


def words_of(wire: Wire) -> str | None:
    """Increase's words for why the wire is in its state, where it gives some."""
    if wire.status in UNEXPLAINED:
        return wire.status
    if wire.reversal is None:
        return None
    return wire.reversal.return_reason_code_description or wire.reversal.description
