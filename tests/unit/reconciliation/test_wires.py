from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.reconciliation import RecordedWire, Told
from libs.contracts.wires import WireState
from services.reconciliation.handlers.wires import WireSides, judge
from services.reconciliation.models import IN_FLIGHT
from services.reconciliation.ports import CoreWire
from services.reconciliation.repository.postings import WirePostings
from tests.support.with_each import with_each
from tests.unit.reconciliation.records import credit, debit, our_wire, their_wire

REFUSED: dict[str, Any] = {
    "state": WireState.REJECTED,
    "accepted": False,
    "told": Told.REFUSED,
}
PENDING: dict[str, Any] = {
    "state": WireState.PENDING_SUBMISSION,
    "accepted": False,
    "told": Told.NOTHING,
    "command_open": True,
}


def kinds(
    ours: RecordedWire | None,
    theirs: CoreWire | None,
    posted: WirePostings | None = None,
    came_back: WirePostings | None = None,
) -> list[str]:
    finding = judge("w_1", WireSides(ours, theirs, posted, came_back=came_back))
    assert isinstance(finding, list)
    assert all(one.subject == "w_1" for one in finding)
    return [one.kind for one in finding]


def test_a_wire_that_is_the_same_on_both_sides_and_debited_once_is_no_difference() -> None:
    assert kinds(our_wire(), their_wire(), debit()) == []


def test_a_returned_wire_keeps_its_debit_and_a_rejected_one_has_none() -> None:
    assert kinds(our_wire(state=WireState.RETURNED), their_wire(state="returned"), debit()) == []
    assert kinds(our_wire(state=WireState.REJECTED), their_wire(state="rejected")) == []


def test_a_wire_that_either_side_lacks_is_a_difference() -> None:
    assert kinds(None, their_wire(), debit()) == ["wire_unknown_to_us"]
    assert kinds(our_wire(), None) == ["wire_missing_at_provider"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"state": "submitted"}, "wire_state"),
        ({"amount": Decimal("10.01")}, "wire_amount"),
        ({"account_id": "acc_2"}, "wire_accounts"),
        ({"external_account_id": "ext_2"}, "wire_accounts"),
    ],
)
def test_each_mismatch_of_a_wire_has_its_kind(changes: dict[str, Any], kind: str) -> None:
    theirs = their_wire(**changes)
    is_debited = theirs.state != "submitted"
    posted = debit(1, f"-{theirs.amount}", theirs.account_id) if is_debited else None

    assert kinds(our_wire(), theirs, posted) == [kind]


@with_each(
    [
        ("completed", None),
        ("completed", debit(2, "-20.00")),
        ("completed", debit(1, "-10.01")),
        ("completed", debit(1, "10.00")),
        ("completed", debit(account_id="acc_2")),
        ("returned", None),
        ("returned", debit(account_id="acc_2")),
        ("rejected", debit()),
        ("submitted", debit()),
    ]
)
def test_a_debit_that_does_not_fit_the_state_is_a_difference(
    case: tuple[str, WirePostings | None],
) -> None:
    state, posted = case
    ours = our_wire(state=WireState(state))

    assert kinds(ours, their_wire(state=state), posted) == ["wire_debit"]


def test_a_return_that_gave_the_money_back_once_is_no_difference() -> None:
    theirs = their_wire(state="returned", return_transaction_id="r_1")

    assert kinds(our_wire(state=WireState.RETURNED), theirs, debit(), credit()) == []


@pytest.mark.parametrize(
    "came_back",
    [
        None,
        credit(2, "20.00"),
        credit(amount="9.99"),
        credit(amount="-10.00"),
        credit(account_id="acc_2"),
    ],
)
def test_a_return_that_did_not_give_the_money_back_once_is_a_difference(
    came_back: WirePostings | None,
) -> None:
    theirs = their_wire(state="returned", return_transaction_id="r_1")

    found = kinds(our_wire(state=WireState.RETURNED), theirs, debit(), came_back)

    assert found == ["wire_return"]


def test_a_debit_on_another_account_names_it() -> None:
    sides = WireSides(our_wire(), their_wire(), debit(account_id="acc_2"))

    finding = judge("w_1", sides)

    assert isinstance(finding, list)
    [theirs] = [one.theirs for one in finding]
    assert theirs is not None
    assert (theirs["account_id"], theirs["posted_to"]) == ("acc_1", "acc_2")


def test_a_debit_whose_account_is_not_known_is_compared_by_its_amount() -> None:
    assert kinds(our_wire(), their_wire(), debit(account_id=None)) == []


def test_a_debit_without_a_wire_is_a_difference() -> None:
    assert kinds(None, None, debit()) == ["wire_debit"]


def test_a_refused_wire_is_not_at_the_bank_and_one_that_is_contradicts_what_was_told() -> None:
    assert kinds(our_wire(**REFUSED), None) == []
    assert kinds(our_wire(**REFUSED), their_wire(), debit()) == ["wire_state", "wire_told"]


def test_success_that_was_told_of_a_wire_that_was_never_accepted_is_a_difference() -> None:
    ours = our_wire(**REFUSED | {"told": Told.ACCEPTED})

    assert kinds(ours, None) == ["wire_told"]


def test_an_answer_that_cannot_be_read_is_a_difference_until_it_can_be() -> None:
    unread: dict[str, Any] = {"told": Told.NOTHING, "is_answer_unreadable": True}

    assert kinds(our_wire(**unread), their_wire(), debit()) == ["wire_told"]
    assert kinds(our_wire(**REFUSED | unread), None) == ["wire_told"]
    assert kinds(our_wire(**REFUSED | unread), their_wire(), debit()) == ["wire_state", "wire_told"]


@pytest.mark.parametrize("theirs", [None, their_wire()])
def test_a_wire_with_unknown_outcome_is_in_flight(theirs: CoreWire | None) -> None:
    assert judge("w_1", WireSides(our_wire(**PENDING), theirs, None)) is IN_FLIGHT


def test_a_wire_that_waits_to_be_sent_agrees_with_a_bank_that_does_not_have_it() -> None:
    waiting = our_wire(**PENDING | {"send_begun": False})

    assert kinds(waiting, None) == []
    assert judge("w_1", WireSides(waiting, their_wire(), None)) is IN_FLIGHT


def test_a_pending_wire_whose_command_has_ended_is_compared() -> None:
    abandoned = our_wire(**PENDING | {"command_open": False})

    assert kinds(abandoned, None) == []
    assert kinds(abandoned, their_wire(), debit()) == ["wire_state"]
