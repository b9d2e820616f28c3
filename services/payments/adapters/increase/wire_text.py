"""Text in the characters that wires carry."""

# ruff: noqa: RUF001 - typographic signs are what is replaced here.

from __future__ import annotations

import re
import unicodedata

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


def wire_text(text: str, longest: int) -> str:
    """The text without accents, ligatures and typographic signs; `?` for what has no equivalent. Never empty.

    Args:
        longest: the text is cut to this many characters.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_WRITTEN_AS))
    base = "".join(c for c in plain if not unicodedata.combining(c))
    carried = _NOT_CARRIED.sub("?", re.sub(r"\s+", " ", base.translate(_WRITTEN_AS)))
    return carried[:longest].strip() or "?"
