"""What core banking's word on a wire means to its sender."""

from __future__ import annotations

import pytest

from libs.contracts import errors as e
from libs.contracts.wires import WireState
from libs.providers.errors import ProviderRefusal
from services.payments import states
from services.payments.handlers.verdict import Verdict, is_decision, told
from tests.unit.payments.test_states import T0, wire


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("insufficient_funds", e.InsufficientFunds),
        ("account_restricted", e.AccountRestricted),
        ("account_closed", e.AccountClosed),
        ("external_account_not_linked", e.ExternalAccountNotLinked),
        ("not_found", e.ProviderRefused),
        ("The bank said so by phone.", e.ProviderRefused),
    ],
)
def test_a_refusal_is_told_by_its_code(code: str, error: type[e.BanksideError]) -> None:
    refused = states.advance(wire(), Verdict(code).state, at=T0, reason=code)

    with pytest.raises(error):
        told(refused)


def test_an_accepted_wire_was_accepted_whatever_became_of_it() -> None:
    accepted = states.advance(wire(), Verdict().state, at=T0)
    rejected = states.advance(accepted, WireState.REJECTED, at=T0, reason="insufficient_funds")

    assert told(accepted) == told(rejected)


def test_a_canceled_wire_is_in_a_state_that_does_not_allow_to_send_it() -> None:
    with pytest.raises(e.InvalidState):
        told(states.advance(wire(), WireState.CANCELED, at=T0))


@pytest.mark.parametrize(
    ("status", "code", "decision"),
    [
        (409, "insufficient_funds", True),
        (404, "not_found", True),
        (422, "refused", True),
        (400, "malformed", True),
        (409, "idempotency_key_reused", False),
        (401, "unauthorized", False),
        (403, "refused", False),
        (429, "too_many", False),
    ],
)
def test_a_no_to_the_way_of_asking_is_no_refusal(status: int, code: str, decision: bool) -> None:
    assert is_decision(ProviderRefusal(status, code, "No.")) is decision
