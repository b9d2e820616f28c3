"""Where services add their operators' commands to the command line."""

OPERATORS = "bankside.operator"
"""The group of entry points: the name of a command, and the cyclopts App of that name in a module of the service."""
