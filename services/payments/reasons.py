"""The reasons of a wire's states, as its history stores and callers see them."""

from __future__ import annotations

from uuid import UUID

from libs.contracts import errors as e
from libs.providers.outcomes import Reason, Refused

LONGEST_REASON = 255
REJECTED = "The bank refused the wire: no money has moved, and the wire is recorded as rejected."

_ERRORS: dict[str, type[e.BanksideError]] = {
    Reason.ACCOUNT_CLOSED: e.AccountClosed,
    Reason.ACCOUNT_RESTRICTED: e.AccountRestricted,
    Reason.EXTERNAL_ACCOUNT_NOT_LINKED: e.ExternalAccountNotLinked,
    Reason.INSUFFICIENT_FUNDS: e.InsufficientFunds,
}


def one_line(text: str) -> str:
    """A reason from outside, made fit to store and show.

    At most `LONGEST_REASON` characters; a question mark replaces each character that cannot be printed.
    """
    return "".join(c if c.isprintable() else "?" for c in text[:LONGEST_REASON])


def reason_of(refused: Refused) -> str:
    """The reason of a refusal: one of `Reason`, or the bank's code when it has no equivalent there."""
    if refused.reason is Reason.PROVIDER_REFUSED:
        return one_line(refused.code)
    return refused.reason.value


def error_of(reason: str | None, transaction_id: UUID) -> e.BanksideError:
    """The answer to the sender of a wire that was rejected for this reason."""
    extra = {"transaction_id": str(transaction_id)}
    precise = _ERRORS.get(reason or "")
    return precise(extra=extra) if precise else e.ProviderRefused(REJECTED, extra=extra)
