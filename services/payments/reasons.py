"""Why a wire is in its state: our code for it, and the bank's own words beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from libs.contracts import errors as e
from libs.contracts.wires import WireReason, WireState
from libs.providers.outcomes import Refused
from libs.providers.provider_words import one_line

REJECTED = "The bank refused the wire: no money has moved, and the wire is recorded as rejected."
REJECTED_BY_OPERATOR = (
    "An operator found that the bank has not carried out the wire: no money has moved, and the wire is recorded as"
    " rejected. The last step of its history says how that is known."
)

_CODES = frozenset(code.value for code in WireReason)
_ERRORS: dict[str, type[e.BanksideError]] = {
    WireReason.ACCOUNT_CLOSED: e.AccountClosed,
    WireReason.ACCOUNT_RESTRICTED: e.AccountRestricted,
    WireReason.EXTERNAL_ACCOUNT_NOT_LINKED: e.ExternalAccountNotLinked,
    WireReason.INSUFFICIENT_FUNDS: e.InsufficientFunds,
}


class Why(NamedTuple):
    """Why a wire changed its state.

    Args:
        reason: None where there is nothing to say.
        detail: the bank's words for it, where it gave some and the reason does not say the same.
        comment: what a person gave as their reason.
    """

    reason: WireReason | None = None
    detail: str | None = None
    comment: str | None = None


NOTHING_TO_SAY = Why()


def why_refused(refused: Refused) -> Why:
    """The bank's words stand beside our reason, also where an adapter found that out: but where its code is our own."""
    if refused.reason not in _ERRORS:
        return Why(WireReason.PROVIDER_REFUSED, refused.words)
    said_by_its_code = refused.code == refused.reason
    return Why(WireReason(refused.reason), None if said_by_its_code else refused.words)


def why_reported(state: WireState, words: str | None) -> Why:
    """Why a wire is in the state that the bank reports, in whose words."""
    if state not in (WireState.REJECTED, WireState.RETURNED):
        return NOTHING_TO_SAY
    if state is WireState.REJECTED and words in _ERRORS:
        return Why(WireReason(words))
    other = WireReason.RETURNED if state is WireState.RETURNED else WireReason.PROVIDER_REFUSED
    return Why(other, one_line(words) if words else None)


def why_recorded(
    state: WireState, reason: str | None, detail: str | None, by: str | None, comment: str | None
) -> Why:
    """What a row of a wire's history says. Releases before `reason_detail` stored the words in place of the reason."""
    if reason is None or reason in _CODES:
        return Why(WireReason(reason) if reason else None, detail, comment)
    if by is None:
        return why_reported(state, reason)
    canceled = state is WireState.CANCELED
    by_operator = WireReason.CANCELED_BY_OPERATOR if canceled else WireReason.DECIDED_BY_OPERATOR
    return Why(by_operator, comment=comment or reason)


@contextmanager
def naming(transaction_id: UUID) -> Iterator[None]:
    """A conflict in the body is about this wire, and names it (interface §6)."""
    try:
        yield
    except e.Conflict as conflict:
        conflict.extra.setdefault("transaction_id", str(transaction_id))
        raise


def error_of(
    transaction_id: UUID, reason: WireReason | None, detail: str | None
) -> e.BanksideError:
    """The answer to the sender of a wire that was rejected for this reason."""
    extra = {"transaction_id": str(transaction_id)}
    if reason is not None:
        extra["reason"] = reason.value
    if detail is not None:
        extra["reason_detail"] = detail
    precise = None if reason is None else _ERRORS.get(reason)
    if precise:
        return precise(extra=extra)
    is_decided = reason is WireReason.DECIDED_BY_OPERATOR
    return e.ProviderRefused(REJECTED_BY_OPERATOR if is_decided else REJECTED, extra=extra)
