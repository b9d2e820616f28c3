"""Errors that the operator at the terminal can mend."""


class OperatorError(Exception):
    """A wrong argument or setting, or an unreachable part of the stack: one sentence, exit status 2, no trace."""
