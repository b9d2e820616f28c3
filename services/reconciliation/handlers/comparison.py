"""A comparison: scans that find suspects, and looks that decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from services.reconciliation.models import Finding, Scanned

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
        """What differs now, for each of the keys; at most 100."""
        ...


def suspects(findings: Mapping[str, Finding]) -> list[str]:
    """The keys that differ or are in flight."""
    return [key for key, finding in findings.items() if finding != []]
