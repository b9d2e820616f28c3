"""Text as the statement's fonts can write it.

They are the PDF format's own (Helvetica): no font has to be shipped, and a file stays small. They know Windows-1252.
What lies outside is written in Latin letters, as the payment networks, which know no others, would have it.
"""

from __future__ import annotations

import unicodedata

from anyascii import anyascii

ENCODING = "cp1252"
UNKNOWN = "?"
SILENT_CATEGORIES = {"Mn", "Mc", "Me", "Lm", "Sk"}
"""Accents, tones and other marks, variation selectors, letters and symbols that modify others."""
SILENT_LETTERS = {
    "\N{ARABIC LETTER ALEF}",
    "\N{THAANA LETTER ALIFU}",
    "\N{GURMUKHI IRI}",
    "\N{GURMUKHI URA}",
    "\N{THAI CHARACTER LAKKHANGYAO}",
    "\N{LAO LETTER O}",
    "\N{HANGUL LETTER IEUNG}",
}
"""Vowels and carriers of vowels that have no Latin letter of their own."""


def written(text: str) -> str:
    """`text` in one line of characters that the fonts have: Łódź is Lódz, 株式会社 is ZhuShiHuiShe.

    A character that has no Latin letters is `?`. One that only changes how others sound or look is left out, unless
    nothing would be left.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    composed = unicodedata.normalize("NFC", text)
    line = " ".join("".join(map(_letter, composed)).split())
    return line or (UNKNOWN if any(map(_is_silent, composed)) else "")


def _letter(character: str) -> str:
    if character.isspace():
        return " "
    if not character.isprintable():
        return ""
    try:
        character.encode(ENCODING)
    except UnicodeEncodeError:
        return anyascii(character) or ("" if _is_silent(character) else UNKNOWN)
    return character


def _is_silent(character: str) -> bool:
    return character in SILENT_LETTERS or unicodedata.category(character) in SILENT_CATEGORIES
