"""What an error of the SDK says: a definite no, or an attempt without a usable answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from increase import APIConnectionError, APIError, APIResponseValidationError, APIStatusError

from libs.providers.errors import NO_DECISION, AttemptFailed, Failure, ProviderRefusal
from libs.retry_after import retry_after

KEY_USED = "idempotency_key_already_used_error"
NOT_FOUND = "object_not_found_error"
PRIVATE_FEATURE = "private_feature_error"
"""A 403 that says nothing of the key: Increase has not enabled the feature. No write is decided by it."""
RATE_LIMITED = 429
DECIDED = frozenset(
    {"invalid_operation_error", "invalid_parameters_error", "malformed_request_error"}
)
"""By an error of these types Increase has looked at the request and said no to it.

`NOT_FOUND` is none of them: our writes name objects that Increase has, and deletes none of. It does not find them under
a key of another group, which sees no earlier send of ours either.
"""

MOST_ERRORS = 10
"""Of the parameters of one request, as told to people."""

LONGEST_REST = timedelta(seconds=30)
"""A 429 that asks for more counts as one that asks for this: an answer must not keep a bank away for a day."""


class KeyUsed(ProviderRefusal):
    """The idempotency key has made an object already. `object_id`: of any kind."""

    def __init__(self, status: int, message: str, object_id: str) -> None:
        super().__init__(status, KEY_USED, message)
        self.object_id = object_id


def conclusion(error: APIError) -> ProviderRefusal | AttemptFailed:
    """The error, without the request, the headers and the values that the SDK's own carries."""
    match error:
        case APIConnectionError():
            cause = error.__cause__
            return cause if isinstance(cause, AttemptFailed) else AttemptFailed(Failure.BROKEN)
        case APIResponseValidationError():
            return AttemptFailed(Failure.UNREADABLE, error.status_code)
        case APIStatusError():
            return _of_status(error.status_code, error.body, error.response.headers)
        case _:
            return AttemptFailed(Failure.BROKEN)


def _of_status(
    status: int, body: object, headers: Mapping[str, str]
) -> ProviderRefusal | AttemptFailed:
    if status >= 500:
        return AttemptFailed(Failure.SERVER_ERROR, status)
    if status == RATE_LIMITED:
        seconds = _rest_seconds(body, headers)
        return AttemptFailed(Failure.TURNED_AWAY, status, retry_after_seconds=seconds)
    if status in NO_DECISION and not _is_private_feature(body):
        return AttemptFailed(Failure.TURNED_AWAY, status)
    match body:
        case {"type": str(kind), "resource_id": str(object_id)} if kind == KEY_USED:
            return KeyUsed(status, _sentence(body), object_id)
        case {"type": str(kind), "title": str()} if status >= 400:
            return ProviderRefusal(status, kind, _sentence(body))
        case _:
            # Not of Increase's error shape: a proxy may have answered.
            return AttemptFailed(Failure.UNREADABLE, status)


def _is_private_feature(body: object) -> bool:
    match body:
        case {"type": str(kind), "title": str()}:
            return kind == PRIVATE_FEATURE
        case _:
            return False


def _rest_seconds(body: object, headers: Mapping[str, str]) -> float | None:
    """How long a 429 wants no request: its header says it, else its body, where Increase documents it."""
    now = datetime.now(UTC)
    later = retry_after(headers.get("Retry-After"), now, LONGEST_REST)
    if later is not None:
        return (later - now).total_seconds()
    match body:
        case {"retry_after": int(seconds)} if seconds > 0 and not isinstance(seconds, bool):
            return min(seconds, LONGEST_REST.total_seconds())
        case _:
            return None


def _sentence(body: object) -> str:
    """What the error says of this request and of each parameter at fault; its title, which is that of its type, where
    it says neither.
    """
    told = body if isinstance(body, dict) else {}
    detail, errors, title = told.get("detail"), told.get("errors"), told.get("title")
    said = detail if isinstance(detail, str) else ""
    for about in map(_of_parameter, errors[:MOST_ERRORS] if isinstance(errors, list) else []):
        if about not in said:
            said += f" {about}."
    return said.strip() or (title if isinstance(title, str) else "")


def _of_parameter(error: object) -> str:
    """The name of the parameter and what is wrong with it. Increase does not document the members of an error."""
    match error:
        case {"field": str(field), "message": str(message)}:
            return f"{field}: {message}".removesuffix(".")
        case dict():
            values = (value for value in error.values() if isinstance(value, str))
            return ": ".join(values).removesuffix(".")
        case _:
            return ""
