"""The results of comparisons: pages of scans, and findings of looks."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, Self

from libs.contracts.exact_json import encode
from libs.persistence.async_engine import AsyncConnection

Side = Mapping[str, Any] | None
"""What one side holds, as JSON without anything sensitive; None: it holds nothing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a record differs between our books and the provider's.

    Args:
        kind: the metric's label; see README.md for the list.
        subject: the id of the record that differs; with the kind it names the difference.
        ids: of the record and of what it belongs to, for operators.
        facts: what stays the same while the difference stands, although the values of both sides move on: two looks
            have to find it alike, and an explanation holds as long as it is the same. None: the values of both sides.
            Where a value that differs is sensitive, and so not among those, its digest is here.
        drifts: `facts` too may go on changing for as long as the difference stands: one that each look of a run has
            found is recorded `by_kind`.
    """

    kind: str
    subject: str
    ids: Mapping[str, str]
    ours: Side
    theirs: Side
    facts: Mapping[str, Any] | None = None
    drifts: bool = False

    def by_kind(self) -> Self:
        """The same where its facts do not count."""
        return replace(self, facts={})

    @property
    def fingerprint(self) -> str:
        """Equal for two looks that find the difference alike."""
        facts = {"ours": self.ours, "theirs": self.theirs} if self.facts is None else self.facts
        values = (self.kind, self.subject, facts)
        return hashlib.sha256(encode(values)).hexdigest()


class _InFlight(Enum):
    IN_FLIGHT = "in_flight"


IN_FLIGHT: Final = _InFlight.IN_FLIGHT
"""A command or a posting is still going to change the record: it is compared once that has ended."""


class _EvidenceGone(Enum):
    EVIDENCE_GONE = "evidence_gone"


EVIDENCE_GONE: Final = _EvidenceGone.EVIDENCE_GONE
"""One side was deleted at the end of its retention: the record can never be compared again."""

Finding = list[Difference] | Literal[_InFlight.IN_FLIGHT] | Literal[_EvidenceGone.EVIDENCE_GONE]
"""Of one key: the differences (none when both sides agree), in flight, or evidence gone."""

Record = Callable[[AsyncConnection], Awaitable[None]]
"""Writes that belong to a page, in the transaction that records how far the scan came."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """One page of one side.

    Args:
        suspects: keys of records that seem to differ or are in flight. They are looked at again.
        next_after: where the next page begins; None: this was the last.
    """

    looked_at: int
    suspects: Sequence[str]
    next_after: str | None
    record: Record | None = None
