"""The answer to the sender of a wire, by core banking's decision."""

from __future__ import annotations

import pytest

from libs.contracts import errors as e
from libs.contracts.wires import WireReason, WireState
from libs.providers.outcomes import Reason, Refused
from services.payments import states
from services.payments.handlers.sending import verdict_reply
from services.payments.reasons import Why, why_refused
from tests.unit.payments.test_states import T0, wire


@pytest.mark.parametrize(
    ("reason", "code", "error"),
    [
        (Reason.INSUFFICIENT_FUNDS, "no_money", e.InsufficientFunds),
        (Reason.ACCOUNT_RESTRICTED, "restricted", e.AccountRestricted),
        (Reason.ACCOUNT_CLOSED, "closed", e.AccountClosed),
        (Reason.EXTERNAL_ACCOUNT_NOT_LINKED, "unlinked", e.ExternalAccountNotLinked),
        (Reason.PROVIDER_REFUSED, "not_found", e.ProviderRefused),
    ],
)
def test_a_refusal_is_answered_by_its_reason(
    reason: Reason, code: str, error: type[e.BanksideError]
) -> None:
    refused = states.advance(
        wire(), WireState.REJECTED, at=T0, why=why_refused(Refused(reason, code))
    )

    with pytest.raises(error):
        verdict_reply(refused)


def test_an_operators_rejection_is_answered_as_that_and_not_as_the_banks() -> None:
    why = Why(WireReason.DECIDED_BY_OPERATOR, comment="The bank said so by phone.")
    refused = states.advance(wire(), WireState.REJECTED, at=T0, why=why)

    with pytest.raises(e.ProviderRefused) as answer:
        verdict_reply(refused)

    assert answer.value.detail.startswith("An operator found that the bank has not carried out")
    assert answer.value.extra["reason"] == "decided_by_operator"


def test_an_accepted_wire_is_answered_as_accepted_also_when_it_was_rejected_later() -> None:
    accepted = states.advance(wire(), WireState.SUBMITTED, at=T0)
    short = Why(WireReason.INSUFFICIENT_FUNDS)
    rejected = states.advance(accepted, WireState.REJECTED, at=T0, why=short)

    assert verdict_reply(accepted) == verdict_reply(rejected)


def test_a_canceled_wire_is_in_a_state_that_does_not_allow_to_send_it() -> None:
    with pytest.raises(e.InvalidState):
        verdict_reply(states.advance(wire(), WireState.CANCELED, at=T0))
