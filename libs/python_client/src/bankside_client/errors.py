"""Errors of calls. `code` is what programs decide by; the message also says what to do, and names the request.

BanksideError
├── InvalidRequest        400, 405, 408, 413, 415, 422: this call did nothing
├── AuthenticationFailed  401
├── PermissionDenied      403
├── NotFound              404
├── Conflict              409: the state of the resource does not allow it; this call did nothing
├── RateLimited           429, still so after the retries
├── ServerError           500 or 502 to a read, or another answer that is no gateway's, such as a redirect
├── Unavailable           503, or no connection: nothing was started
└── OutcomeUnknown        504, a 500 or 502 to a write, no answer, a 5xx that is not the gateway's, a success to a
                          write that cannot be read, 409 idempotency_in_progress, idempotency_key_reused or abandoned,
                          a retry that fails and says nothing of the send before: a write may have been carried out

What a refused call did not do, an earlier call under the same Idempotency-Key may have done.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bankside_client.advice import ADVICE

NO_CONNECTION = "no_connection"
NO_ANSWER = "no_answer"
UNREADABLE_ANSWER = "unreadable_answer"
_OWN_ADVICE = {
    NO_CONNECTION: "Check the address of the gateway and the network; nothing was sent.",
    NO_ANSWER: "Send a write again under the same Idempotency-Key, which `idempotency_key` has.",
    UNREADABLE_ANSWER: "Check that the address is a Bankside gateway's, and that this client is current.",
}


class BanksideError(Exception):
    """A call that did not succeed.

    Attributes:
        code: the interface's, or `no_connection`, `no_answer`, `unreadable_answer`, which are this client's.
        detail: what is wrong, as a sentence.
        advice: what to do about it, as a sentence; empty for a code that this client does not know.
        request_id: names the request when you ask for help.
        status: of the answer; None without one.
        problem: the whole answer, with the members that belong to the code, such as `transaction_id`.
        errors: of a 422, each value that is not allowed: `loc`, `msg`, `type`.
        idempotency_key: of a write: a call that repeats it has its effect once.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        request_id: str,
        *,
        status: int | None = None,
        problem: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.code = code
        self.detail = detail
        self.advice = ADVICE.get(code) or _OWN_ADVICE.get(code, "")
        self.request_id = request_id
        self.status = status
        self.problem = problem or {}
        self.idempotency_key = idempotency_key
        errors = self.problem.get("detail")
        self.errors: list[Any] = errors if isinstance(errors, list) else []
        says = " ".join(part for part in (detail, self.advice) if part)
        super().__init__(f"{code}: {says} (request {request_id})")

    def __reduce__(self) -> tuple[Any, ...]:
        """pickle and copy make an exception anew of its `args`, which are the message alone."""
        make = partial(
            type(self),
            status=self.status,
            problem=self.problem,
            idempotency_key=self.idempotency_key,
        )
        return make, (self.code, self.detail, self.request_id), self.__dict__


class InvalidRequest(BanksideError):
    """The request is not valid; this call did nothing."""


class AuthenticationFailed(BanksideError):
    """The request is not authenticated."""


class PermissionDenied(BanksideError):
    """The key does not allow it."""


class NotFound(BanksideError):
    """There is no such resource for this key."""


class Conflict(BanksideError):
    """The state of the resource does not allow it; this call did nothing."""


class RateLimited(BanksideError):
    """Too many requests, also after the retries."""


class ServerError(BanksideError):
    """The gateway or a provider failed."""


class Unavailable(BanksideError):
    """Nothing was started."""


class OutcomeUnknown(BanksideError):
    """It is not known whether a write was carried out: repeat it under its `idempotency_key`, never under a new one.
    After `abandoned` and `idempotency_key_reused` each repetition is 409: look the resource up, a wire by
    `problem["transaction_id"]`, or ask the operator.
    """


_BY_STATUS: dict[int, type[BanksideError]] = {
    401: AuthenticationFailed,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    503: Unavailable,
    504: OutcomeUnknown,
}


_BY_CODE: dict[str, type[BanksideError]] = {
    "abandoned": OutcomeUnknown,
    "idempotency_in_progress": OutcomeUnknown,
    "idempotency_key_reused": OutcomeUnknown,
}


def error_class(status: int, code: str) -> type[BanksideError]:
    """The class of an answer that is no success."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    return _BY_STATUS.get(status, InvalidRequest if 400 <= status < 500 else ServerError)
