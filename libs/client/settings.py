"""Settings of the command line: the environment, else the files of the stack of this checkout."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from libs.client.credentials import local_folder, stack
from libs.client.errors import OperatorError
from libs.secret_sources import is_set, variables

PREFIX = "BANKSIDE_"

OF_THE_COMMAND_LINE = frozenset(
    variable
    for name in (
        "BASE_URL",
        "SUBSCRIPTION_KEY",
        "SECRET",
        "OPERATOR_URL",
        "OPERATOR_SUBSCRIPTION_KEY",
        "OPERATOR_SECRET",
    )
    for variable in variables(f"{PREFIX}{name}")
)
"""Variables that have the command line act on a stack that may be elsewhere. No stack has them among its settings."""

_SCHEMES = ("http", "https")


def load_stack_environment() -> None:
    """Add the settings in `.local/stack.env` to the environment; a variable that is set keeps its value.

    Those of the command line are left out: `make up` of earlier releases wrote them there, too.
    """
    folder = local_folder()
    path = folder / "stack.env" if folder else None
    if path is None or not path.exists():
        return
    from dotenv import dotenv_values  # noqa: PLC0415 - only where there is a stack: the command starts quickly

    try:
        values = dotenv_values(path, interpolate=False)
    except (OSError, UnicodeDecodeError):
        raise OperatorError(f"{path} cannot be read.") from None
    for name, value in values.items():
        is_setting = name.startswith(PREFIX) and name not in OF_THE_COMMAND_LINE
        if is_setting and value is not None and not is_set(name):
            os.environ.setdefault(name, value)


def require_own_stack() -> None:
    """Raises OperatorError: the environment names another gateway than that of the stack of this checkout."""
    found = stack()
    own = {
        "BANKSIDE_BASE_URL": found.base_url if found else None,
        "BANKSIDE_OPERATOR_URL": found.operator_url if found else None,
    }
    for variable, url in own.items():
        named = os.environ.get(variable)
        if named and named.rstrip("/") != (url or "").rstrip("/"):
            raise OperatorError(
                f"{variable} names another gateway than that of the stack of this checkout, on which alone this works:"
                " unset it, and start the stack (make up) where there is none."
            )


def base_url() -> str:
    """The URL of the gateway, without a trailing slash."""
    found = os.environ.get("BANKSIDE_BASE_URL") or getattr(stack(), "base_url", None)
    return _url(found, "gateway", "BANKSIDE_BASE_URL")


def operator_url() -> str:
    """The URL of the gateway's listener for operators, without a trailing slash."""
    found = os.environ.get("BANKSIDE_OPERATOR_URL") or getattr(stack(), "operator_url", None)
    return _url(found, "gateway's listener for operators", "BANKSIDE_OPERATOR_URL")


def bank_url(name: str) -> str:
    """The URL of a bank that runs beside the stack, without a trailing slash."""
    variable, known = f"{PREFIX}{name.upper()}_URL", stack()
    found = os.environ.get(variable) or (known.bank_urls.get(name) if known else None)
    return _url(found, "bank of the stack", variable)


def _url(found: str | None, what: str, variable: str) -> str:
    if not found:
        raise OperatorError(
            f"The {what} is not known: start the stack (make up), or set {variable}."
        )
    try:
        parts = urlsplit(found)
        valid = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise OperatorError(f"{variable} is not the URL of a {what}.")
    return found.rstrip("/")
