"""From responses to values and errors of the contracts, with every digit kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from libs.client.transport import Response
from libs.contracts.errors import (
    ERRORS,
    LOOK_BEFORE_REPEATING,
    BanksideError,
    InternalError,
    Invalid,
    OutcomePending,
    ProviderError,
    ProviderTimeout,
    RateLimited,
    Unavailable,
    error_from_wire,
)
from libs.contracts.exact_json import NotExactJson, decode
from libs.contracts.model import OF_ANY_RELEASE, Model
from libs.contracts.operation import Operation
from libs.contracts.principal import Family

R = TypeVar("R")

PROBLEM_MEMBERS = frozenset({"type", "title", "status", "detail", "code"})
PROBLEM_TYPE = "application/problem+json"
BY_STATUS: Mapping[int, type[BanksideError]] = {
    kind.status: kind for kind in (RateLimited, Unavailable)
}
"""What an answer is that has a code of a later gateway: nothing was started, and the request may be sent again."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """A success. `replayed`: it is the stored answer of an earlier request with the same Idempotency-Key."""

    data: R
    message: str
    request_id: str | None
    replayed: bool
    pagination: Model | None = None
    as_of_date: date | None = None


class UnknownRefusal(InternalError):
    """The request was refused with an answer that is not the gateway's, or is one of a later release."""


def success_of(operation: Operation, response: Response) -> Answer[Any]:
    """The envelope of a success, its data as the operation's reply.

    Raises:
        InternalError: it is not one.
    """
    try:
        envelope = decode(response.body)
        pagination = envelope.get("pagination")
        as_of_date = envelope.get("as_of_date")
        return Answer(
            data=_read(operation.reply, envelope["data"]),
            message=envelope["message"],
            request_id=response.headers.get("X-Request-Id"),
            replayed=response.headers.get("Idempotent-Replayed") == "true",
            pagination=_read(operation.pagination, pagination) if operation.pagination else None,
            as_of_date=date.fromisoformat(as_of_date) if as_of_date else None,
        )
    except (NotExactJson, ValidationError, KeyError, AttributeError, ValueError) as error:
        raise InternalError(f"The answer to {operation.name} cannot be read.") from error


def is_unknown(response: Response) -> bool:
    """Whether the answer is a 5xx of a proxy, which may have passed the request on, or of a gateway that broke down.

    The gateway's own, such as the 503 that says that nothing was started, are problem documents with a code.
    """
    if response.status < 500:
        return False
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    match _problem(response):
        case {"code": str()}:
            return media_type != PROBLEM_TYPE
        case _:
            return True


def is_fault(error: BanksideError) -> bool:
    """Whether it is a 500 or 502: to a write it says nothing certain about what was done before it."""
    return isinstance(error, InternalError | ProviderError) and not isinstance(
        error, UnknownRefusal
    )


def unanswered(operation: Operation[Any, Any]) -> BanksideError:
    """The error of a request to which no answer came: the outcome of a write is unknown."""
    if operation.is_read:
        return ProviderTimeout("No answer came.")
    is_driven_on = operation.family is not Family.OPERATOR
    return OutcomePending("No answer came." if is_driven_on else LOOK_BEFORE_REPEATING)


def error_of(response: Response) -> BanksideError:
    """What a response reports, by its code, else by its status: `headers` has its Retry-After, `extra` what the problem
    says beyond the usual.
    """
    problem = _problem(response)
    headers = _retry_after(response.headers)
    match problem:
        case {"code": str(code)}:
            extra = {name: item for name, item in problem.items() if name not in PROBLEM_MEMBERS}
            if code not in ERRORS and (by_status := BY_STATUS.get(response.status)) is not None:
                error = by_status(problem.get("detail"), extra=extra)
            else:
                error = error_from_wire(code, problem.get("detail"), extra, None)
        case {"detail": list(errors)} if response.status == Invalid.status and all(
            map(_is_of_the_gateway, errors)
        ):
            error = Invalid(errors)
        case _:
            # Of something between us and the gateway.
            kind = RateLimited if response.status == RateLimited.status else InternalError
            error = kind(f"The answer is {response.status} {_phrase(response.status)}.")
    if isinstance(error, InternalError) and response.status < InternalError.status:
        error = UnknownRefusal(error.detail, extra=error.extra)
    error.headers = headers
    return error


def _is_of_the_gateway(mistake: object) -> bool:
    match mistake:
        case {"loc": list(), "msg": str(), "type": "too_many_errors", "ctx": {"omitted": int()}}:
            return True
        case {"loc": list(), "msg": str(), "type": str(kind)}:
            return kind != "too_many_errors"
        case _:
            return False


def _problem(response: Response) -> Any:
    try:
        return decode(response.body)
    except NotExactJson:
        return None


def _retry_after(headers: Mapping[str, str]) -> dict[str, str]:
    value = headers.get("Retry-After")
    return {"Retry-After": value} if value is not None else {}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _read(kind: Any, value: Any) -> Any:
    """Lax where JSON has no type for it (dates, enums), and open to fields that a newer gateway adds."""
    return _adapter(kind).validate_python(
        value, strict=False, extra="ignore", context={OF_ANY_RELEASE: True}
    )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
