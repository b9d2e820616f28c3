"""A comparison: scans that find suspects, and looks that decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from services.reconciliation.models import Finding, Scanned
from services.reconciliation.ports import ProviderList

STEP_REQUESTS = 100
"""Requests that one page makes, about, at a provider that is asked for each record: a few at once, a slow one answers
them within the minute that a step may take.
"""
LOOK_AT_ONCE = 25
"""Records that are looked at together. A customer takes the most requests: four, where a provider is asked for each of
its records.
"""

Scan = Callable[[str | None, float], Awaitable[Scanned]]
"""Takes where the page begins (None: at the start) and a deadline in Unix seconds."""


class Comparison(Protocol):
    """One kind of record, compared in both directions.

    Its scans go once through the books of one side each and name the keys that seem to differ. Only `look`, which reads
    both sides afresh, decides which differences are recorded.
    """

    @property
    def name(self) -> str: ...

    @property
    def scans(self) -> Mapping[str, Scan]:
        """By name, in the order in which they are made."""
        ...

    @property
    def starts_anew(self) -> frozenset[str]:
        """Scans that begin anew in every run, even one that resumes the scans of a run that was given up: they are
        short, or keep a cursor of their own.
        """
        ...

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        """What differs now, for each of the keys; at most `LOOK_AT_ONCE`."""
        ...


def page_size(largest: int, *looked_up: ProviderList[Any]) -> int:
    """How many records a page has that are looked up in these lists.

    Args:
        largest: where one request of each list names many records.
    """
    requests_each = sum(one.requests_each for one in looked_up)
    return min(largest, STEP_REQUESTS // requests_each) if requests_each else largest


def suspects(findings: Mapping[str, Finding]) -> list[str]:
    """The keys that differ or are in flight."""
    return [key for key, finding in findings.items() if finding != []]
