"""What commands by which an operator decides something have in common: why, and being sure."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from libs.cli.output import console
from libs.client.errors import OperatorError
from libs.contracts.operating.pages import LONGEST_REASON

Flag = Annotated[bool, Parameter(negative=())]


def reason_of(text: str) -> str:
    """The --reason as it is recorded. Raises OperatorError."""
    reason = text.strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise OperatorError(f"--reason is 1 to {LONGEST_REASON} characters.")
    return reason


def refuse_to_ask_in_json(*, yes: bool, json: bool) -> None:
    """Raises OperatorError."""
    if json and not yes:
        raise OperatorError("With --json nothing is asked: give --yes as well.")


def require_terminal() -> None:
    """Raises OperatorError: there is no one to ask."""
    if not sys.stdin.isatty():
        raise OperatorError(
            "This is no terminal, so the command cannot ask: give --yes to go on without asking."
        )


def is_agreed(question: str, *, yes: bool, json: bool) -> bool:
    """Whether to go on: by --yes, or as it is answered at the terminal. Where not, this says that nothing was done.

    Raises OperatorError: it cannot be asked.
    """
    refuse_to_ask_in_json(yes=yes, json=json)
    if yes:
        return True
    require_terminal()
    if agrees(question):
        return True
    console().print("Nothing was done.")
    return False


def agrees(question: str) -> bool:
    """Ask at the terminal; anything but yes is no, and so is the end of input (Ctrl-D)."""
    try:
        return console().input(f"{question} \\[y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False
