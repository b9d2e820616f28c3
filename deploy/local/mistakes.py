"""What goes wrong for reasons outside of the code, told in a sentence."""

from __future__ import annotations


class Mistake(Exception):
    """The message is the one sentence to show: what is the matter, and what to do about it."""
