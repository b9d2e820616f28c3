"""The states of a wire and their transitions (interface §6). No other module changes a wire's state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from libs.contracts.wires import WireState as State
from services.payments.models import Step, WireRecord
from services.payments.reasons import NOTHING_TO_SAY, Why, why_reported

TRANSITIONS: dict[State, frozenset[State]] = {
    State.PENDING_APPROVAL: frozenset({State.PENDING_SUBMISSION, State.CANCELED}),
    State.PENDING_SUBMISSION: frozenset({State.SUBMITTED, State.REJECTED, State.CANCELED}),
    State.SUBMITTED: frozenset({State.COMPLETED, State.REJECTED}),
    State.COMPLETED: frozenset({State.RETURNED}),
    State.REJECTED: frozenset(),
    State.RETURNED: frozenset(),
    State.CANCELED: frozenset(),
}

EVENTS: dict[State, str] = {
    State.PENDING_APPROVAL: "wire.approval_requested",
    State.PENDING_SUBMISSION: "wire.created",
    State.SUBMITTED: "wire.submitted",
    State.COMPLETED: "wire.completed",
    State.REJECTED: "wire.rejected",
    State.RETURNED: "wire.returned",
    State.CANCELED: "wire.canceled",
}
"""The event for arrival in a state. `event_of` replaces `wire.created` by `APPROVED` when the wire entered
pending_submission by an approval.
"""
APPROVED = "wire.approved"


def event_of(wire: WireRecord) -> str:
    """The type of the event of its last step."""
    if wire.is_pending and wire.sequence > 1:
        return APPROVED
    return EVENTS[wire.state]


class IllegalTransition(Exception):
    """The transition is not one of `TRANSITIONS`."""

    def __init__(self, current: State, following: State) -> None:
        super().__init__(f"{current} to {following}")


def may_follow(current: State, following: State) -> bool:
    return following in TRANSITIONS[current]


def advance(
    wire: WireRecord,
    state: State,
    *,
    at: datetime,
    why: Why = NOTHING_TO_SAY,
    by: str | None = None,
) -> WireRecord:
    """The next version of the wire. Its history never goes back in time: an earlier `at` becomes the last step's.

    Raises:
        IllegalTransition: the state may not follow.
    """
    if not may_follow(wire.state, state):
        raise IllegalTransition(wire.state, state)
    step = Step(state, max(at, wire.updated_at), why.reason, by, why.comment, why.detail)
    return replace(wire, history=(*wire.history, step))


def apply_report(
    wire: WireRecord, state: State, *, at: datetime, words: str | None = None
) -> list[WireRecord]:
    """The new versions of the wire that a reported state causes. Empty when the wire has already been in that state.

    Core banking reports on wires that it accepted. For a wire that is pending, the first version is `submitted`.

    Args:
        words: core banking's, for why it is in that state.

    Raises:
        IllegalTransition: the report contradicts the history.
    """
    if wire.has_been(state):
        return []
    versions = []
    if wire.is_pending and state is not State.SUBMITTED:
        versions.append(advance(wire, State.SUBMITTED, at=at))
    latest = versions[-1] if versions else wire
    versions.append(advance(latest, state, at=at, why=why_reported(state, words)))
    return versions


def catch_up(
    wire: WireRecord, shown: State, *, at: datetime, words: str | None = None
) -> list[WireRecord]:
    """As `apply_report`, of a state that may be the last of several: a wire that was returned was completed before."""
    versions: list[WireRecord] = []
    for state in (State.COMPLETED, shown) if shown is State.RETURNED else (shown,):
        versions += apply_report(versions[-1] if versions else wire, state, at=at, words=words)
    return versions
