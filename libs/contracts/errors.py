"""Every error that a request can be answered with, as one tree.

    BanksideError
    ├── MalformedJson                400  malformed_json
    ├── IdempotencyKeyRequired       400  idempotency_key_required
    ├── Unauthenticated              401
    │   ├── MissingCredentials            missing_credentials
    │   ├── MalformedCredentials          malformed_credentials
    │   ├── UnknownSubscriptionKey        unknown_subscription_key
    │   ├── TimestampOutOfWindow          timestamp_out_of_window
    │   ├── InvalidSignature              invalid_signature
    │   └── NonceReused                   nonce_reused
    ├── AddressNotAllowed            403  address_not_allowed
    ├── WrongRouteFamily             403  wrong_route_family
    ├── InsufficientScope            403  insufficient_scope
    ├── InsufficientRole             403  insufficient_role
    ├── LoginRefused                 403  login_refused
    ├── SessionEnded                 403  session_ended
    ├── ApproverIsInitiator          403  approver_is_initiator
    ├── NotFound                     404  not_found
    ├── MethodNotAllowed             405  method_not_allowed
    ├── RequestTimeout               408  request_timeout
    ├── Conflict                     409
    │   ├── Abandoned                     abandoned
    │   ├── AccountClosed                 account_closed
    │   ├── AccountRestricted             account_restricted
    │   ├── AlreadyExists                 already_exists
    │   ├── ExternalAccountNotLinked      external_account_not_linked
    │   ├── IdempotencyInProgress         idempotency_in_progress
    │   ├── IdempotencyKeyReused          idempotency_key_reused
    │   ├── InsufficientFunds             insufficient_funds
    │   ├── InvalidState                  invalid_state
    │   ├── LimitExceeded                 limit_exceeded
    │   └── ProviderRefused               provider_refused
    ├── BodyTooLarge                 413  body_too_large
    ├── UnsupportedMediaType         415  unsupported_media_type
    ├── Invalid                      422  (a body of its own: {"detail": [...]})
    ├── RateLimited                  429  rate_limited
    ├── InternalError                500  internal_error
    ├── ProviderError                502  provider_error
    ├── Unavailable                  503  unavailable
    └── OutcomeUnknown               504
        ├── OutcomePending                outcome_pending
        └── ProviderTimeout               provider_timeout

The docstring of a class is what the caller reads as `detail` unless a better one is given. `extra` are further members
of the problem document (RFC 9457); `headers` go with the response.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

MAX_ERRORS = 100
"""Shown of a request that is not valid; one more entry says how many there are besides."""
ErrorDetail = dict[str, Any]
"""One validation error: loc, msg, type, and perhaps input and ctx."""


class BanksideError(Exception):
    """The request could not be carried out."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        detail: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.detail = detail or inspect.cleandoc(type(self).__doc__ or "").split("\n")[0]
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})
        super().__init__(self.code)

    @classmethod
    def title(cls) -> str:
        return HTTPStatus(cls.status).phrase


class MalformedJson(BanksideError):
    """The body is not JSON as this interface takes it."""

    status, code = 400, "malformed_json"


class IdempotencyKeyRequired(BanksideError):
    """Writes with this subscription key need an Idempotency-Key."""

    status, code = 400, "idempotency_key_required"


class Unauthenticated(BanksideError):
    """The request is not authenticated."""

    status, code = 401, "unauthenticated"


class MissingCredentials(Unauthenticated):
    """An authentication header is missing."""

    code = "missing_credentials"


class MalformedCredentials(Unauthenticated):
    """An authentication header does not have the right form."""

    code = "malformed_credentials"


class UnknownSubscriptionKey(Unauthenticated):
    """The subscription key is not known."""

    code = "unknown_subscription_key"


class TimestampOutOfWindow(Unauthenticated):
    """The timestamp is too far from the server's clock."""

    code = "timestamp_out_of_window"


class InvalidSignature(Unauthenticated):
    """The signature does not match the request."""

    code = "invalid_signature"


class NonceReused(Unauthenticated):
    """This nonce was used before."""

    code = "nonce_reused"


class AddressNotAllowed(BanksideError):
    """This subscription key may not be used from this address."""

    status, code = 403, "address_not_allowed"


class WrongRouteFamily(BanksideError):
    """This subscription key belongs to another route family."""

    status, code = 403, "wrong_route_family"


class InsufficientScope(BanksideError):
    """This subscription key lacks the scope that the operation needs."""

    status, code = 403, "insufficient_scope"


class InsufficientRole(BanksideError):
    """The operator's role does not allow this."""

    status, code = 403, "insufficient_role"


class LoginRefused(BanksideError):
    """Name, password or code is not right."""

    status, code = 403, "login_refused"


class SessionEnded(BanksideError):
    """There is no such session of an operator, or it has ended: log in."""

    status, code = 403, "session_ended"


class ApproverIsInitiator(BanksideError):
    """The subscription key that asked for a wire cannot decide on it: another key has to."""

    status, code = 403, "approver_is_initiator"


class NotFound(BanksideError):
    """There is no such resource."""

    status, code = 404, "not_found"


class MethodNotAllowed(BanksideError):
    """The path does not take this method."""

    status, code = 405, "method_not_allowed"


class RequestTimeout(BanksideError):
    """The body did not arrive in time."""

    status, code = 408, "request_timeout"


class Conflict(BanksideError):
    """The state of the resource does not allow this."""

    status, code = 409, "conflict"


class Abandoned(Conflict):
    """An operator ended this request; it may have had its effect. Find out before sending it again."""

    code = "abandoned"


class AccountClosed(Conflict):
    """The account is closed."""

    code = "account_closed"


class AccountRestricted(Conflict):
    """The account is restricted."""

    code = "account_restricted"


class AlreadyExists(Conflict):
    """Something of this name or id exists already."""

    code = "already_exists"


class ExternalAccountNotLinked(Conflict):
    """The external account is not linked to this customer."""

    code = "external_account_not_linked"


class IdempotencyInProgress(Conflict):
    """The first request with this Idempotency-Key is still being carried out."""

    code = "idempotency_in_progress"

    def __init__(self, detail: str | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("headers", {"Retry-After": "1"})
        super().__init__(detail, **kwargs)


class IdempotencyKeyReused(Conflict):
    """This Idempotency-Key was used with another body."""

    code = "idempotency_key_reused"


class InsufficientFunds(Conflict):
    """The account's available balance is too low."""

    code = "insufficient_funds"


class InvalidState(Conflict):
    """The resource is in a state that does not allow this."""

    code = "invalid_state"


class LimitExceeded(Conflict):
    """The wire is beyond a limit of the customer's wire policy.

    `limit` names it, `allowed` is the limit, `used` what other wires have used of it.
    """

    code = "limit_exceeded"


class ProviderRefused(Conflict):
    """The provider refused this."""

    code = "provider_refused"


class BodyTooLarge(BanksideError):
    """The body is larger than this service takes."""

    status, code = 413, "body_too_large"


class UnsupportedMediaType(BanksideError):
    """The body must be application/json without a content encoding."""

    status, code = 415, "unsupported_media_type"


def too_many_errors(omitted: int) -> ErrorDetail:
    """Stands at the end of a list of errors that is cut."""
    return {
        "loc": ["body"],
        "msg": f"{omitted} more errors are not shown",
        "type": "too_many_errors",
        "ctx": {"omitted": omitted},
    }


def _bounded(errors: list[ErrorDetail]) -> list[ErrorDetail]:
    """The first `MAX_ERRORS`, and how many more there are, also where parts of the list were cut before."""
    shown = [error for error in errors if error["type"] != "too_many_errors"]
    omitted = max(0, len(shown) - MAX_ERRORS)
    omitted += sum(e["ctx"]["omitted"] for e in errors if e["type"] == "too_many_errors")
    return [*shown[:MAX_ERRORS], too_many_errors(omitted)] if omitted else shown


class Invalid(BanksideError):
    """The request has values that are not allowed."""

    status, code = 422, "invalid"

    def __init__(self, errors: list[ErrorDetail]) -> None:
        super().__init__()
        self.errors = _bounded(errors)


class RateLimited(BanksideError):
    """Too many requests."""

    status, code = 429, "rate_limited"


class InternalError(BanksideError):
    """Something went wrong on our side."""

    status, code = 500, "internal_error"


class ProviderError(BanksideError):
    """A provider gave an answer that cannot be used."""

    status, code = 502, "provider_error"


class Unavailable(BanksideError):
    """The service is not available; nothing was started. Try again shortly."""

    status, code = 503, "unavailable"

    def __init__(self, detail: str | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("headers", {"Retry-After": "1"})
        super().__init__(detail, **kwargs)


class OutcomeUnknown(BanksideError):
    """The outcome is not known yet."""

    status, code = 504, "outcome_unknown"


class OutcomePending(OutcomeUnknown):
    """The request was accepted and is not finished; the same Idempotency-Key returns its result later."""

    code = "outcome_pending"


LOOK_BEFORE_REPEATING = (
    "No answer came in time, and it may have been done: look before you repeat it."
)
"""The detail of an operator's write whose outcome is not known. Unlike a command, it is not driven on."""


class ProviderTimeout(OutcomeUnknown):
    """A provider did not answer in time."""

    code = "provider_timeout"


def _leaves(cls: type[BanksideError]) -> list[type[BanksideError]]:
    below = [leaf for sub in cls.__subclasses__() for leaf in _leaves(sub)]
    return below or [cls]


ERRORS: dict[str, type[BanksideError]] = {leaf.code: leaf for leaf in _leaves(BanksideError)}
"""Every error by its code: how an error that travelled in a reply becomes one again."""


def error_from_wire(
    code: str, detail: str | None, extra: Mapping[str, Any], errors: list[ErrorDetail] | None
) -> BanksideError:
    """The error that a service replied with; a code that is not known here is an internal error."""
    if code == Invalid.code:
        return Invalid(errors or [])
    return ERRORS.get(code, InternalError)(detail, extra=extra)
