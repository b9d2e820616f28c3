"""Settings of the command line: the environment, else the files of the stack of this checkout."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from libs.client.credentials import local_folder, stack
from libs.client.errors import OperatorError
from libs.secret_sources import BadSecret, is_set, read_secret

PREFIX = "BANKSIDE_"

_SCHEMES = ("http", "https", "amqp", "amqps")


def load_stack_environment() -> None:
    """Add the BANKSIDE_* of `.local/stack.env` to the environment; a variable that is set keeps its value."""
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
        if name.startswith(PREFIX) and value is not None and not is_set(name):
            os.environ.setdefault(name, value)


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


def amqp_variable(service: str) -> str:
    """The variable that has the URL of the broker with the service's own user."""
    return f"{PREFIX}{service.upper()}_AMQP_URL"


def amqp_url(service: str) -> str:
    """The URL of the broker, with the service's own user."""
    variable = amqp_variable(service)
    try:
        return _url(read_secret(variable), "broker", variable)
    except BadSecret as error:
        raise OperatorError(str(error)) from None


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
