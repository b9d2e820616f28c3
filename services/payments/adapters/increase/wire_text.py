"""Text in the characters that wires carry, and Increase's words about them."""

# ruff: noqa: RUF001 - typographic signs are what is replaced here.

from __future__ import annotations

import re
import unicodedata

from anyascii import anyascii

from libs.providers.increase.money import amount_of
from libs.providers.increase.wires import Wire

_NOT_CARRIED = re.compile(r"""[^ a-zA-Z0-9.?!,;:_/@\\&'"`~()<>#%+\-=$]""")
_WRITTEN_AS = str.maketrans(
    {
        "Æ": "AE", "Œ": "OE", "ẞ": "SS", "‚": ",", "«": '"', "»": '"', "•": "-", "·": ".", "×": "x",
        "¥": "JPY", "§": "Sec.", "№": "No.",
        "[": "(", "]": ")", "{": "(", "}": ")", "|": "/", "*": "-", "^": "-",
    }
)  # fmt: skip
"""Where `anyascii` writes other letters, or what wires do not carry."""

UNEXPLAINED = frozenset({"canceled", "rejected"})
"""Statuses of which Increase does not say why: its word for the status is all there is."""


def wire_text(text: str, longest: int) -> str:
    """The text in Latin letters, digits and the signs of wires; `?` for what has no equivalent. Never empty.

    Args:
        longest: the text is cut to this many characters.
    """
    written = "".join(map(_latin, unicodedata.normalize("NFC", text).translate(_WRITTEN_AS)))
    carried = _NOT_CARRIED.sub("?", re.sub(r"\s+", " ", written.translate(_WRITTEN_AS)))
    return carried[:longest].strip() or "?"


def is_legible(carried: str) -> bool:
    """Whether a text in the characters of wires has a letter or a digit."""
    return any(c.isalnum() for c in carried)


def _latin(character: str) -> str:
    """Nothing for invisible format characters (category Cf), and for letters and marks that Latin writing leaves out,
    such as the Arabic alif.
    """
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return anyascii(character) or ("" if category[0] in "LM" else "?")


def words_of(wire: Wire) -> str | None:
    """Increase's words for why the wire is in its state, where it gives some; how much came back, if not all of it."""
    if wire.status in UNEXPLAINED:
        return wire.status
    reversal = wire.reversal
    if reversal is None:
        return None
    words = reversal.return_reason_code_description or reversal.description
    if reversal.amount is None or reversal.amount == wire.amount:
        return words
    return f"{amount_of(reversal.amount):,} of {amount_of(wire.amount):,} came back: {words}"
