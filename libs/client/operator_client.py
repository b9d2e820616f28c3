"""The family of operators as the command line uses it: the key and the address of this stack, errors as sentences.

operators = ask(LIST_OPERATORS, ListOperators())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import aiohttp
from pydantic import ValidationError

from libs.client import settings
from libs.client.answers import is_fault
from libs.client.client import Client
from libs.client.credentials import look_up_operator
from libs.client.errors import OperatorError, UnknownOutcome
from libs.client.transport import Transport
from libs.contracts.binding import VALUE_ERROR
from libs.contracts.errors import (
    BanksideError,
    InsufficientRole,
    Invalid,
    Unauthenticated,
    Unavailable,
    WrongRouteFamily,
)
from libs.contracts.model import Command
from libs.contracts.operation import Operation

ATTEMPTS = 3
PATIENCE_SECONDS = 10.0

C = TypeVar("C", bound=Command)
R = TypeVar("R")


@asynccontextmanager
async def operating(key: str | None = None) -> AsyncIterator[Client]:
    """A client that signs as an operator: `key` is a saved name or a subscription key.

    Raises:
        OperatorError: the key or the address is not known here.
    """
    url, credentials = settings.operator_url(), look_up_operator(key)
    async with aiohttp.ClientSession(trust_env=False) as session:
        transport = Transport(url, credentials, session)
        yield Client(transport, attempts=ATTEMPTS, patience_seconds=PATIENCE_SECONDS)


def ask(operation: Operation[C, R], command: C, *, key: str | None = None) -> R:
    """The data of the answer.

    Raises:
        OperatorError: the gateway cannot be reached, does not take the key, or does not take the values.
        UnknownOutcome: a write was answered with a fault, and may have been done before it.
        BanksideError: any other refusal of the gateway, such as NotFound; its detail is a sentence.
    """

    async def run() -> R:
        async with operating(key) as client:
            return (await client.call(operation, command)).data

    with mistakes_told():
        try:
            return asyncio.run(run())
        except BanksideError as error:
            if operation.is_read or not is_fault(error):
                raise
            raise UnknownOutcome(
                f"{error.detail} ({error.code}) It may have been done: look before you repeat it."
            ) from None


@contextmanager
def mistakes_told() -> Iterator[None]:
    """What an operator can mend raises OperatorError: the gateway cannot be reached, does not take the key or the
    values.
    """
    try:
        yield
    except (Unauthenticated, InsufficientRole, WrongRouteFamily) as refusal:
        raise OperatorError(f"The gateway refuses the operator's key: {refusal.detail}") from None
    except Invalid as invalid:
        raise OperatorError(_sentence(invalid)) from None
    except Unavailable as error:
        raise OperatorError(
            "The gateway cannot be reached, or cannot reach a service: is the stack running (make status)?"
            f" {error.detail}"
        ) from None


def checked(kind: type[C], values: Mapping[str, Any]) -> C:
    """A command of these values. Raises OperatorError: they are not allowed."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise OperatorError(wrong_values(error)) from None


def wrong_values(error: ValidationError) -> str:
    """The sentence of a command that takes other values."""
    wrong = (
        f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix(VALUE_ERROR)}"
        for item in error.errors()
    )
    return f"These values are not allowed: {'; '.join(wrong)}."


def _sentence(invalid: Invalid) -> str:
    wrong = (f"{'.'.join(map(str, error['loc'][1:]))}: {error['msg']}" for error in invalid.errors)
    return f"The gateway does not take these values: {'; '.join(wrong)}."
