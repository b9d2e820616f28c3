"""What an operator can get wrong, and how the command line says so."""


class OperatorMistake(Exception):
    """Something that the person at the terminal can put right: one sentence, exit status 2, never a trace."""
