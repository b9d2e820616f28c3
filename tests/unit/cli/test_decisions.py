"""Why an operator decides: what is recorded, and what is refused."""

from __future__ import annotations

import pytest

from libs.cli.decisions import (
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.client.errors import OperatorError
from libs.contracts.operating.pages import LONGEST_REASON


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
