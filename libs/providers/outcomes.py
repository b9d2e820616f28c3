"""What came of a write at a provider, as values that adapters decide and services act on.

    Accepted ── it happened; the provider's ids are in the answer
    Refused ─── it did not happen, and will not under this key
    NotSent ─── certainly nothing was sent
    Unknown ─── it may have happened, or may still happen

No HTTP status, error code or state name of a provider leaves its adapter but as the text beside our reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Reason(StrEnum):
    """Why a provider refuses, in our words; the value is the code of the error that callers get."""

    ACCOUNT_CLOSED = "account_closed"
    ACCOUNT_RESTRICTED = "account_restricted"
    ALREADY_LINKED = "already_linked"
    """The routing and account number belong to an external account that the customer has."""
    EXTERNAL_ACCOUNT_NOT_LINKED = "external_account_not_linked"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    PROVIDER_REFUSED = "provider_refused"
    """Any other reason."""


@dataclass(frozen=True, slots=True)
class Accepted(Generic[AnswerT_co]):
    answer: AnswerT_co


@dataclass(frozen=True, slots=True)
class Refused:
    """Args:
    code: the provider's own.
    detail: the provider's sentence; shown to operators, never logged.
    """

    reason: Reason
    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Args:
    sent: whether this attempt sent the write; False when it was only asked about.
    needs_operator: sending it again is not safe any more, and asking does not tell.
    """

    why: str
    sent: bool = True
    needs_operator: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """The provider answered that it holds nothing under the key: never arrived, not arrived yet, or forgotten."""


Outcome = Accepted[AnswerT_co] | Refused | NotSent | Unknown
"""Of an attempt at a write."""

Finding = Accepted[AnswerT_co] | Refused | Absent | Unknown
"""Of asking about a write. A refusal is found only where the provider keeps refusals under their keys."""
