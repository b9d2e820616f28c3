"""Errors that the operator at the terminal can mend. Standard library only: `make` uses it before there is `.venv`."""


class OperatorError(Exception):
    """A wrong argument or setting, or an unreachable part of the stack: shown as one sentence, without a trace."""


class UnknownOutcome(OperatorError):
    """A write may have been done, and its answer is lost."""
