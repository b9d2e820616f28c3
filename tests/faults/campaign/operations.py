"""What callers ask for, and all that they were answered: the history from which a run is judged."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.people import new_key


class Kind(enum.Enum):
    WIRE = "wire"
    ONBOARDING = "onboarding"
    UPDATE = "update"
    SUBSCRIPTION = "subscription"
    READ = "read"


WRITES = frozenset(Kind) - {Kind.READ}
NOT_DONE = frozenset({"unavailable"})
"""The command was not accepted, and will never be carried out unless it is sent again."""
UNDECIDED = frozenset({"outcome_pending", "idempotency_in_progress", "provider_timeout"})
READ_REFUSALS = frozenset({"unavailable", "provider_error", "provider_timeout"})
"""With which a read may be answered while something is broken."""
NO_ANSWER, CUT_OFF, WENT_AWAY = "no answer", "connection lost", "caller went away"
"""Not in time; the connection ended; the caller ended it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    sent_at: float
    """Of the monotonic clock, in seconds, as all times here."""
    answered_at: float
    code: str
    """Of the problem; `200`; or why there is none."""
    through: str
    """Which gateway."""

    @property
    def seconds(self) -> float:
        return self.answered_at - self.sent_at

    def __str__(self) -> str:
        return f"{self.sent_at:.3f} +{self.seconds:.3f} s by {self.through}: {self.code}"


@dataclass(slots=True)
class Operation:
    """One thing that a caller wants, under one Idempotency-Key."""

    kind: Kind
    owner: str
    """The customer or partner who asks."""
    method: str
    target: str
    body: bytes = b""
    mark: str = ""
    """By which the bank's records lead back to it: of a wire the amount, of an onboarding the EIN, of an update the
    name.
    """
    key: str = field(default_factory=new_key)
    attempts: list[Attempt] = field(default_factory=list)
    data: Any = None
    """Of the answer 200."""
    is_given_up: bool = False
    """Its caller does not send it again, known or not what came of it."""

    @property
    def is_done(self) -> bool:
        return any(attempt.code == "200" for attempt in self.attempts)

    @property
    def may_have_been_done(self) -> bool:
        """Whether an attempt may have been carried out although none was answered 200."""
        return any(attempt.code not in NOT_DONE for attempt in self.attempts)

    @property
    def first(self) -> Attempt:
        return self.attempts[0]

    def history(self) -> str:
        lines = [f"{self.kind.value} {self.mark} {self.method} {self.target} {self.key}"]
        return "\n    ".join(lines + [str(attempt) for attempt in self.attempts])


class WrongAnswer(Exception):
    """A caller was told what cannot be true, or what the interface does not allow."""


def now() -> float:
    return time.monotonic()
