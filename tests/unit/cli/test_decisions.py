"""Why an operator decides: what is recorded, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from libs.cli.decisions import (
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.client.errors import OperatorError
from libs.contracts.operating import keys, operators, saga_steps
from libs.contracts.operating.pages import LONGEST_REASON
from tests.unit.cli.at_terminal import AtTerminal

SAGA = "019aacf2-1b3e-7000-8000-000000000001"
NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
KEY = keys.KeyView(
    subscription_key="sub_1",
    tenant="acme",
    family="partner",
    customer_id=None,
    scopes=["accounts:read"],
    allowed_networks=[],
    reads_per_minute=1,
    writes_per_minute=1,
    wires_per_minute=1,
    created_at=NOW,
    expires_at=None,
    revoked_at=None,
    last_used_at=NOW,
)
ADA = operators.OperatorView(
    name="ada",
    role="operator",
    subscription_keys=[],
    login=None,
    created_at=NOW,
    revoked_at=NOW,
    last_used_at=None,
)
RESOLVE = ("sagas", "resolve", SAGA, "name", "--reason", "By telephone.", "--as")
FINAL: list[tuple[tuple[str, ...], str, Any, str]] = [
    (("keys", "revoke", "sub_1"), keys.REVOKE_KEY.name, None, "sub_1  acme  partner  active"),
    (("operators", "revoke", "ada"), operators.REVOKE_OPERATOR.name, ADA, "all keys of ada"),
    (
        ("operators", "revoke-key", "ada", "sub_1"),
        operators.REVOKE_OPERATOR_KEY.name,
        ADA,
        "the key sub_1 of ada",
    ),
    (
        ("operators", "reset-login", "ada"),
        operators.RESET_LOGIN.name,
        operators.OneTimePassword(name="ada", one_time_password="once", expires_at=NOW),
        "authenticator app of ada",
    ),
    (
        (*RESOLVE, "absent"),
        saga_steps.RESOLVE_STEP.name,
        saga_steps.ResolvedStep(
            saga_id=SAGA,
            step="name",
            tenant="acme",
            customer_id=SAGA,
            operation="onboarding.update_person",
            command_id=SAGA,
            first_sent_at=NOW,
            last_asked_at=NOW,
            resolution=saga_steps.StepResolution.ABSENT,
            is_open=True,
        ),
        f"name of {SAGA}: Record that the provider holds nothing of it",
    ),
    (
        ("sagas", "settle", SAGA, "name", "--reason", "Removed by hand."),
        saga_steps.SETTLE_STEP.name,
        saga_steps.SettledStep(saga_id=SAGA, step="name", settled=True),
        "has been seen to, for good?",
    ),
]


@pytest.mark.parametrize("reason", ["", " \n", "a" * (LONGEST_REASON + 1)])
def test_a_reason_is_given_and_short(reason: str) -> None:
    with pytest.raises(OperatorError, match="--reason"):
        reason_of(reason)

    assert reason_of(" It was paid. ") == "It was paid."


def test_nothing_is_asked_where_no_one_can_answer() -> None:
    with pytest.raises(OperatorError, match="--yes"):
        require_terminal()
    with pytest.raises(OperatorError, match="--yes"):
        refuse_to_ask_in_json(yes=False, json=True)


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y", True), ("YES ", True), ("", False), ("no", False)]
)
def test_anything_but_yes_is_no(monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: answer)

    assert agrees("Is it done?") is agreed


@pytest.mark.parametrize(
    ("command", "operation", "answer", "asks"), FINAL, ids=lambda value: str(value)[:40]
)
def test_what_is_final_is_done_once_it_is_agreed_to(
    command: tuple[str, ...], operation: str, answer: Any, asks: str
) -> None:
    answers = {operation: lambda _: answer, keys.GET_KEY.name: lambda _: KEY}
    agreed, declined, unasked = (AtTerminal(answers) for _ in range(3))

    yes = agreed.run(*command, types="y")
    no = declined.run(*command, types="n")
    by_script = unasked.run(*command, "--yes", "--json")

    assert (yes.status, no.status, by_script.status) == (0, 1, 0)
    assert asks in yes.out
    assert "Nothing was done." in no.out
    assert operation in agreed.operations
    assert operation not in declined.operations
    assert unasked.operations == [operation]
