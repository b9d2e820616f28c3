"""Text from outside neither controls the terminal nor looks like a line of the command."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.text import Text

from libs.cli import cli, output
from libs.cli.decisions import agrees
from libs.contracts.errors import InvalidState, OutcomePending, RateLimited

HOSTILE = "x\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\n019a  wire approved [bold]\x7f"
SPACES = {" ", "\n"}


def controls(text: str) -> set[str]:
    return {one for one in text if not one.isprintable()} - SPACES


def test_a_text_is_one_line_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.console().print(f"[bold]said[/]: {output.escape(HOSTILE)}")

    shown = capsys.readouterr().out
    assert shown.startswith("said: x\\x1b[2J")
    assert shown.endswith("\\r\\n019a  wire approved [bold]\\x7f\n")
    assert controls(shown) == set()


@pytest.mark.parametrize(
    "text", [HOSTILE.replace("[", ""), Text(HOSTILE), output.pretty(b"{\xc2\x9b")]
)
def test_what_was_not_escaped_does_not_control_the_terminal(
    text: str | Text, capsys: pytest.CaptureFixture[str]
) -> None:
    output.console().print(text)

    shown = capsys.readouterr().out
    assert "\N{REPLACEMENT CHARACTER}" in shown
    assert controls(shown) == set()


def test_json_keeps_its_value_without_controlling_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"text": HOSTILE + "\U000e0001 Zoë"}
    output.print_json(value)

    shown = capsys.readouterr().out
    assert json.loads(shown) == value
    assert "Zoë" in shown
    assert controls(shown) == set()


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidState(HOSTILE), 2),
        (OutcomePending(HOSTILE), 3),
        (RateLimited(HOSTILE), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=["mistake", "unknown", "refused", "Ctrl-C"],
)
def test_an_error_is_one_line_without_a_trace(
    error: BaseException,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(_: list[str]) -> None:
        raise error

    monkeypatch.setattr(cli, "make_app", fails)
    with pytest.raises(SystemExit) as raised:
        cli.main()

    said = capsys.readouterr().err
    assert raised.value.code == status
    assert said.startswith("bankside: ")
    assert said.count("\n") == 1
    assert controls(said) == set()


def test_the_end_of_input_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    assert not agrees("Have it sent?")
