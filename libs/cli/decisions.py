"""What commands by which an operator decides something have in common: who decides, why, and being sure."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from libs.cli.output import console
from libs.client.errors import OperatorError

LONGEST_REASON = 500
LONGEST_NAME = 100

Flag = Annotated[bool, Parameter(negative=())]


def reason_of(text: str, *, longest: int = LONGEST_REASON) -> str:
    """The --reason as it is recorded. Raises OperatorError."""
    reason = text.strip()
    if not 0 < len(reason) <= longest:
        raise OperatorError(f"--reason is 1 to {longest} characters.")
    return reason


def operator_of(by: str | None) -> str:
    """Who is recorded as having decided: --by, else the user of this terminal. Raises OperatorError."""
    operator = (os.environ.get("USER", "") if by is None else by).strip()
    if not 0 < len(operator) <= LONGEST_NAME:
        raise OperatorError(f"Say who decides: --by is 1 to {LONGEST_NAME} characters.")
    return operator


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


def agrees(question: str) -> bool:
    """Ask at the terminal; anything but yes is no."""
    return console().input(f"{question} \\[y/N] ").strip().lower() in {"y", "yes"}
