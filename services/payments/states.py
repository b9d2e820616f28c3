"""The states of a wire and what may follow what (interface §6). Nothing else changes a wire's state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from libs.contracts.wires import WireState as State
from services.payments.models import Step, WireRecord

TRANSITIONS: dict[State, frozenset[State]] = {
    State.PENDING_SUBMISSION: frozenset({State.SUBMITTED, State.REJECTED, State.CANCELED}),
    State.SUBMITTED: frozenset({State.COMPLETED, State.REJECTED}),
    State.COMPLETED: frozenset({State.RETURNED}),
    State.REJECTED: frozenset(),
    State.RETURNED: frozenset(),
    State.CANCELED: frozenset(),
}

EVENTS: dict[State, str] = {
    State.PENDING_SUBMISSION: "wire.created",
    State.SUBMITTED: "wire.submitted",
    State.COMPLETED: "wire.completed",
    State.REJECTED: "wire.rejected",
    State.RETURNED: "wire.returned",
    State.CANCELED: "wire.canceled",
}
"""The event that tells of a wire's arrival in a state."""


class IllegalTransition(Exception):
    """The table does not have it."""

    def __init__(self, current: State, following: State) -> None:
        super().__init__(f"{current} to {following}")


def may_follow(current: State, following: State) -> bool:
    return following in TRANSITIONS[current]


def advance(
    wire: WireRecord, state: State, *, at: datetime, reason: str | None = None
) -> WireRecord:
    """The next version of the wire. Its history never goes back in time, whosever clock `at` is from.

    Raises:
        IllegalTransition: the state may not follow.
    """
    if not may_follow(wire.state, state):
        raise IllegalTransition(wire.state, state)
    step = Step(state, max(at, wire.updated_at), reason)
    return replace(wire, history=(*wire.history, step))


def hear(
    wire: WireRecord, state: State, *, at: datetime, reason: str | None = None
) -> list[WireRecord]:
    """The versions that news from the provider make of a wire: none when it is not news.

    A provider only tells of wires that it accepted: for one that is still pending, that is news too.

    Raises:
        IllegalTransition: the news contradict what is known.
    """
    if wire.has_been(state):
        return []
    versions = []
    if wire.is_pending and state is not State.SUBMITTED:
        versions.append(advance(wire, State.SUBMITTED, at=at))
    versions.append(advance(versions[-1] if versions else wire, state, at=at, reason=reason))
    return versions
