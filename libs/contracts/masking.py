"""How much is shown of a number that is not shown whole."""

from __future__ import annotations

MOST_SHOWN = 4


def masked(number: str) -> str:
    """The last four digits, and of a number of less than eight the last half: account numbers have 4 to 17 digits, and
    one of four would stand whole.
    """
    return number[len(number) - min(MOST_SHOWN, len(number) // 2) :]
