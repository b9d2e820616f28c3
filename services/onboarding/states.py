"""The states of a customer and what may follow what (interface §6)."""

from __future__ import annotations

from collections.abc import Iterable

from libs.contracts.customers import CustomerStatus as Status

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset(
        {Status.APPROVED, Status.AWAITING_DOCUMENTS, Status.PENDING_REVIEW, Status.DENIED}
    ),
    Status.AWAITING_DOCUMENTS: frozenset(
        {Status.PENDING_REVIEW, Status.APPROVED, Status.DENIED, Status.CANCELED}
    ),
    Status.PENDING_REVIEW: frozenset({Status.APPROVED, Status.DENIED, Status.AWAITING_DOCUMENTS}),
    Status.APPROVED: frozenset({Status.PENDING_REVIEW}),
    Status.DENIED: frozenset(),
    Status.CANCELED: frozenset(),
}

FINAL = frozenset(status for status, following in TRANSITIONS.items() if not following)

EVENTS: dict[Status, str] = {
    Status.APPROVED: "customer.approved",
    Status.DENIED: "customer.denied",
    Status.PENDING_REVIEW: "customer.pending_review",
    Status.AWAITING_DOCUMENTS: "customer.documents_required",
    Status.CANCELED: "customer.updated",
}
"""The event that tells of a customer's arrival in a state; nothing arrives in `pending`."""

_AFTER_REVIEW = frozenset({Status.AWAITING_DOCUMENTS, Status.DENIED, Status.CANCELED})

_WORST_FIRST = (
    Status.DENIED,
    Status.CANCELED,
    Status.AWAITING_DOCUMENTS,
    Status.PENDING_REVIEW,
    Status.PENDING,
)


def may_follow(current: Status, following: Status) -> bool:
    return following in TRANSITIONS[current]


def following(current: Status, verdict: Status) -> Status | None:
    """Where a verdict takes a customer; None: it stays.

    A customer whose verification the identity provider cancels is denied where the interface has no way to `canceled`.
    Nothing arrives in `pending`, by which the provider says that it has not decided.
    """
    if may_follow(current, verdict):
        return verdict
    if verdict is Status.CANCELED and may_follow(current, Status.DENIED):
        return Status.DENIED
    return None


def way(current: Status, verdict: Status) -> tuple[Status, ...]:
    """The states through which a verdict takes a customer; none: it stays.

    An approved customer that is denied or canceled, or of whom documents are wanted, passes through the review. The
    provider may have begun and ended that between two readings, or while the account was being opened, or have held
    none.
    """
    if current is Status.APPROVED and verdict in _AFTER_REVIEW:
        return Status.PENDING_REVIEW, *way(Status.PENDING_REVIEW, verdict)
    next_state = following(current, verdict)
    return () if next_state is None else (next_state,)


def overall(verifications: Iterable[Status]) -> Status:
    """What the verifications of a business and its persons make together: the worst of them."""
    given = set(verifications)
    return next((status for status in _WORST_FIRST if status in given), Status.APPROVED)
