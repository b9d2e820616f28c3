"""Outcomes of a write at a provider: adapters decide on them, services act on them.

    Accepted ── it happened; the provider's ids are in the answer
    Refused ─── it did not happen, and will not under this key
    NotSent ─── certainly nothing was sent
    Unknown ─── it may have happened, or may still happen

An adapter passes no HTTP status, error code or state name of its provider on, except as text beside our `Reason`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from libs.providers.provider_words import one_line, without_numbers

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Reason(StrEnum):
    """Why a provider refused. The value is the code of the error that callers get."""

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
    """It happened.

    Args:
        was_found: the answer is that of an earlier send, and was looked up.
    """

    answer: AnswerT_co
    was_found: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The write did not happen, and will not under this key: the provider refused it.

    Args:
        code: the provider's own.
        detail: the provider's sentence, which may repeat what it was sent: see `words`.
    """

    reason: Reason
    code: str
    detail: str = ""

    @property
    def words(self) -> str:
        """The code, and what can be stored and shown of the sentence behind it; never logged."""
        said = f"{self.code}: {self.detail}" if self.detail else self.code
        return one_line(without_numbers(said))


@dataclass(frozen=True, slots=True)
class NotSent:
    why: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The write may have happened, or may still happen.

    Args:
        sent: whether this attempt sent the write; False when it only looked the write up.
        needs_operator: a resend is not safe any more, and looking the write up gives no answer.
    """

    why: str
    sent: bool = True
    needs_operator: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """The provider has nothing under the key: the write never arrived, has not arrived yet, or is forgotten."""


Outcome = Accepted[AnswerT_co] | Refused | NotSent | Unknown
"""Of an attempt at a write."""

Finding = Accepted[AnswerT_co] | Refused | Absent | Unknown
"""Of looking a write up. A refusal is found only where the provider stores refusals under their keys."""
