"""Attempts that fail, by the browser's address.

All operators share the rates of the console's one key at the gateway. Without a bound here, a browser that has no
session could use them up with made-up tokens or passwords.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cachetools import TTLCache

from libs.contracts.errors import OutcomePending, ProviderTimeout, RateLimited, Unavailable

SECONDS = 60
NO_VERDICT = (Unavailable, ProviderTimeout, OutcomePending)
SUBJECTS = 10_000
"""Remembered at most; beyond, the one that was seen least recently is forgotten."""


@dataclass(slots=True)
class _Count:
    failures: int = 0


class Attempts:
    """Counts failed attempts by subject, and refuses more of a subject than its rate.

    Args:
        per_minute: how many may fail of one subject, such as an address.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._counts: TTLCache[str, _Count] = TTLCache(SUBJECTS, SECONDS)

    @contextmanager
    def attempt(self, subject: str) -> Iterator[None]:
        """An attempt of a subject. It counts from its beginning until it succeeds, or the gateway says nothing of it:
        many may be under way at once.

        Raises:
            RateLimited: too many of the subject failed in a minute, with Retry-After.
        """
        # The time of a count begins with its first failure and is not renewed, since none is stored anew.
        count = self._counts.get(subject)
        if count is None:
            count = self._counts[subject] = _Count()
        if count.failures >= self._per_minute:
            raise RateLimited(
                "Too many attempts failed from this address.", headers={"Retry-After": str(SECONDS)}
            )
        count.failures += 1
        try:
            yield
        except NO_VERDICT:  # of a gateway that is away: nothing was guessed
            count.failures -= 1
            raise
        count.failures -= 1
