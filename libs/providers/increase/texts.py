"""Texts as Increase takes them."""

from __future__ import annotations

LONGEST_TEXT = 200
"""Characters of a name, a line of an address, a description or a title."""


def text_at_increase(text: str) -> str:
    """As much of the text as Increase takes. Ours have up to 255 characters, and full names more."""
    return text[:LONGEST_TEXT].rstrip()
