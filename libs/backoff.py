"""Exponential backoff with jitter: how long to pause before the same thing is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass

MOST_DOUBLINGS = 32
"""Beyond it, every pause has reached its bound; a float would overflow in the end."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that grow with each failure in a row.

    Args:
        first_seconds: the pause after the first failure.
        longest_seconds: the bound of the pauses, before jitter.
        factor: a pause divided by the one before it.
        jitter: the share by which a pause is shortened or lengthened at random, so that clients do not retry in step.
    """

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0
    jitter: float = 0.0

    def pause_seconds(self, failures: int) -> float:
        """The pause after this number of failures in a row, 1 or more."""
        growth = self.factor ** min(failures - 1, MOST_DOUBLINGS)
        pause = min(self.first_seconds * growth, self.longest_seconds)
        return pause * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - no secret


def lengthened(seconds: float, jitter: float) -> float:
    """A pause that a server asks for, lengthened at random by up to this share: its clients do not return in step."""
    return seconds * random.uniform(1, 1 + jitter)  # noqa: S311 - no secret
