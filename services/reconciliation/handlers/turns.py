"""Scans and looks of a run take turns while both have something to do."""

from __future__ import annotations

import time

TURN_SECONDS = 300.0
"""Long enough that most runs end their scans within the first turn."""


class Turns:
    """A run whose scans outlast its limit records what they find all the same. The first turn is the scans'."""

    def __init__(self) -> None:
        self._is_of_looks = False
        self._since = time.monotonic()

    def is_of_looks(self) -> bool:
        now = time.monotonic()
        if now - self._since >= TURN_SECONDS:
            self._is_of_looks, self._since = not self._is_of_looks, now
        return self._is_of_looks

    def give_to_scans(self) -> None:
        self._is_of_looks, self._since = False, time.monotonic()
