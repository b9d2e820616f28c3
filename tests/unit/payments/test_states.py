"""The states of a wire."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.contracts.events import EVENT_TYPES
from libs.contracts.wires import WireReason
from libs.contracts.wires import WireState as State
from services.payments import states
from services.payments.models import Step, WireRecord
from tests.support.with_each import with_each

T0 = datetime(2026, 1, 31, 12, tzinfo=UTC)
ALLOWED = {
    ("pending_approval", "pending_submission"),
    ("pending_approval", "canceled"),
    ("pending_submission", "submitted"),
    ("pending_submission", "rejected"),
    ("pending_submission", "canceled"),
    ("submitted", "completed"),
    ("submitted", "rejected"),
    ("completed", "returned"),
}


def wire() -> WireRecord:
    return WireRecord(
        transaction_id=UUID(int=1),
        tenant="t_1",
        customer_id="c_1",
        sending_account_id="acc_1",
        external_account_id="ext_1",
        amount=Decimal("10.00"),
        purpose="Invoice 2047",
        send_age_seconds=0.0,
        last_sent_at=None,
        last_send_age_seconds=None,
        canceled_by=None,
        created_at=T0,
        creditor=None,
        history=(Step(State.PENDING_SUBMISSION, T0, None),),
    )


def in_state(*history: State) -> WireRecord:
    found = wire()
    for state in history:
        found = states.advance(found, state, at=T0)
    return found


@with_each(itertools.product(State, State))
def test_only_the_transitions_of_the_interface_are_allowed(case: tuple[State, State]) -> None:
    current, following = case

    assert states.may_follow(current, following) == ((current, following) in ALLOWED)


def test_a_transition_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(states.IllegalTransition, match="canceled to submitted"):
        states.advance(in_state(State.CANCELED), State.SUBMITTED, at=T0)


def test_each_state_has_an_event_of_the_table() -> None:
    assert set(states.EVENTS) == set(State)
    assert {*states.EVENTS.values(), states.APPROVED} == {
        name for name, event in EVENT_TYPES.items() if event.kind == "wire"
    }


@pytest.mark.parametrize("reported", [State.COMPLETED, State.REJECTED])
def test_a_report_about_a_pending_wire_records_its_acceptance_first(reported: State) -> None:
    versions = states.apply_report(wire(), reported, at=T0 + timedelta(seconds=3), words="so")

    assert [version.state for version in versions] == [State.SUBMITTED, reported]
    assert [version.sequence for version in versions] == [2, 3]
    refused = (WireReason.PROVIDER_REFUSED, "so")
    says = refused if reported is State.REJECTED else (None, None)
    assert [(each.reason, each.reason_detail) for each in versions] == [(None, None), says]
    assert versions[-1].was_accepted


def test_a_report_of_a_state_that_the_wire_has_been_in_changes_nothing() -> None:
    completed = in_state(State.SUBMITTED, State.COMPLETED)

    assert states.apply_report(completed, State.SUBMITTED, at=T0) == []
    assert states.apply_report(completed, State.COMPLETED, at=T0) == []


@pytest.mark.parametrize(
    ("history", "reported"),
    [
        ((State.CANCELED,), State.SUBMITTED),
        ((State.REJECTED,), State.COMPLETED),
        ((State.SUBMITTED,), State.RETURNED),
        ((State.SUBMITTED, State.COMPLETED), State.REJECTED),
    ],
)
def test_a_report_that_contradicts_the_history_is_refused(
    history: tuple[State, ...], reported: State
) -> None:
    with pytest.raises(states.IllegalTransition):
        states.apply_report(in_state(*history), reported, at=T0)


def test_a_refused_wire_was_not_accepted_and_one_rejected_later_was() -> None:
    assert not in_state(State.REJECTED).was_accepted
    assert in_state(State.SUBMITTED, State.REJECTED).was_accepted


@given(st.lists(st.tuples(st.sampled_from(State), st.integers(-1000, 1000)), max_size=12))
def test_reports_in_any_order_leave_a_history_of_allowed_transitions(
    reports: list[tuple[State, int]],
) -> None:
    current = wire()
    for state, seconds in reports:
        try:
            versions = states.apply_report(current, state, at=T0 + timedelta(seconds=seconds))
        except states.IllegalTransition:
            continue
        current = versions[-1] if versions else current

    steps = [step.state for step in current.history]
    moments = [step.at for step in current.history]
    assert all(pair in ALLOWED for pair in itertools.pairwise(steps))
    assert len(set(steps)) == len(steps)
    assert moments == sorted(moments)
