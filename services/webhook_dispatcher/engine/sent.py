"""A delivery on its way through the engine."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from services.webhook_dispatcher.ports import Attempt
from services.webhook_dispatcher.repository.claims import Candidate, Claimed


@dataclass(frozen=True, slots=True)
class Leased:
    """A delivery that this process is at.

    Args:
        begin_before: by the clock of the loop; a post that begins later could outlast the lease.
    """

    delivery: Claimed
    to: Candidate
    claim: UUID
    begin_before: float


@dataclass(frozen=True, slots=True)
class Sent:
    leased: Leased
    attempt: Attempt
