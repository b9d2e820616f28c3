"""Text as the statement's fonts can write it.

They are the PDF format's own (Helvetica): no font has to be shipped, and a file stays small. They know Windows-1252.
What lies outside is written in Latin letters, as the payment networks, which know no others, would have it.
"""

from __future__ import annotations

from anyascii import anyascii

ENCODING = "cp1252"
UNKNOWN = "?"


def written(text: str) -> str:
    """`text` in one line of characters that the fonts have: Łódź is Lódz, 株式会社 is ZhuShiHuiShe."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_letter, text))
    return " ".join(text.split())


def _letter(character: str) -> str:
    if character.isspace():
        return " "
    if not character.isprintable():
        return ""
    try:
        character.encode(ENCODING)
    except UnicodeEncodeError:
        return anyascii(character) or UNKNOWN
    return character
