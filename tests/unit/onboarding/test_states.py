"""The states of a customer."""

from __future__ import annotations

import itertools

import pytest

from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.events import EVENT_TYPES
from services.onboarding import states
from tests.support.with_each import with_each

ALLOWED = {
    ("pending", "approved"),
    ("pending", "awaiting_documents"),
    ("pending", "pending_review"),
    ("pending", "denied"),
    ("awaiting_documents", "pending_review"),
    ("awaiting_documents", "approved"),
    ("awaiting_documents", "denied"),
    ("awaiting_documents", "canceled"),
    ("pending_review", "approved"),
    ("pending_review", "denied"),
    ("pending_review", "awaiting_documents"),
    ("approved", "pending_review"),
}


@with_each(itertools.product(Status, Status))
def test_only_the_transitions_of_the_interface_are_allowed(case: tuple[Status, Status]) -> None:
    current, following = case

    assert states.may_follow(current, following) == ((current, following) in ALLOWED)


def test_a_final_state_is_one_that_nothing_follows() -> None:
    assert {Status.DENIED, Status.CANCELED} == states.FINAL


def test_every_state_that_can_be_arrived_in_is_told_by_an_event_of_the_table() -> None:
    arrived = set().union(*states.TRANSITIONS.values())

    assert arrived == set(states.EVENTS)
    assert set(states.EVENTS.values()) <= set(EVENT_TYPES)


@pytest.mark.parametrize(
    ("verifications", "together"),
    [
        (["approved", "approved"], "approved"),
        (["approved", "pending_review"], "pending_review"),
        (["pending_review", "awaiting_documents"], "awaiting_documents"),
        (["awaiting_documents", "denied", "approved"], "denied"),
        (["awaiting_documents", "canceled"], "canceled"),
        (["approved", "pending"], "pending"),
    ],
)
def test_the_worst_verification_decides(verifications: list[str], together: str) -> None:
    assert states.overall(Status(v) for v in verifications) == together


@with_each(
    [
        ("pending", "canceled", "denied"),
        ("pending_review", "canceled", "denied"),
        ("awaiting_documents", "canceled", "canceled"),
        ("approved", "canceled", None),
        ("approved", "denied", None),
        ("pending", "pending", None),
        ("pending_review", "pending", None),
        ("pending", "denied", "denied"),
    ]
)
def test_a_verdict_takes_a_customer_where_the_interface_has_a_way(
    case: tuple[str, str, str | None],
) -> None:
    current, verdict, following = case
    expected = None if following is None else Status(following)

    assert states.following(Status(current), Status(verdict)) is expected


@with_each(
    [
        ("approved", "awaiting_documents", ("pending_review", "awaiting_documents")),
        ("approved", "denied", ("pending_review", "denied")),
        ("approved", "pending_review", ("pending_review",)),
        ("approved", "canceled", ("pending_review", "denied")),
        ("approved", "approved", ()),
        ("approved", "pending", ()),
        ("pending_review", "denied", ("denied",)),
    ]
)
def test_an_approved_customer_passes_through_review(case: tuple[str, str, tuple[str, ...]]) -> None:
    current, verdict, way = case

    assert states.way(Status(current), Status(verdict)) == way
