"""The responses that are no success: which an operation can give, and what they look like."""

from __future__ import annotations

from collections import defaultdict
from http import HTTPStatus
from typing import Any

from libs.contracts import errors as e
from libs.contracts.operation import Operation

Schema = dict[str, Any]

UNAUTHENTICATED = (
    e.MissingCredentials,
    e.MalformedCredentials,
    e.UnknownSubscriptionKey,
    e.TimestampOutOfWindow,
    e.InvalidSignature,
    e.NonceReused,
)
ALWAYS = (
    *UNAUTHENTICATED,
    e.AddressNotAllowed,
    e.WrongRouteFamily,
    e.RequestTimeout,
    e.BodyTooLarge,
    e.RateLimited,
    e.InternalError,
    e.Unavailable,
)
WITH_BODY = (e.MalformedJson, e.UnsupportedMediaType)
RETRIED_LATER = (429, 503)

_TEXT = {"type": "string"}

_NAMED_HEADERS = {"type": "array", "items": _TEXT, "description": "The headers in question"}

_PENDING_ID = {**_TEXT, "description": "The id of what is pending, by which it can be asked for"}

EXTRA_MEMBERS: dict[str, dict[str, Schema]] = {
    e.MissingCredentials.code: {"headers": _NAMED_HEADERS},
    e.MalformedCredentials.code: {"headers": _NAMED_HEADERS},
    e.TimestampOutOfWindow.code: {
        "server_time": {"type": "integer", "description": "The server's Unix time in seconds"}
    },
    e.AddressNotAllowed.code: {
        "address": {**_TEXT, "description": "Where the request came from, as the server sees it"}
    },
    e.InsufficientRole.code: {"role": {**_TEXT, "description": "The role that it needs"}},
    e.InvalidSignature.code: {
        "canonical_string": {
            **_TEXT,
            "description": "What the server would have signed; not in production",
        }
    },
}
"""Members of a problem beyond those that every problem has, by code."""

COMPONENTS: dict[str, Schema] = {
    "Problem": {
        "title": "Problem",
        "description": "Every error but a failed validation (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": {**_TEXT, "format": "uri-reference"},
            "title": {**_TEXT, "description": "The status in words"},
            "status": {"type": "integer", "description": "The HTTP status again"},
            "detail": {**_TEXT, "description": "A sentence for a person"},
            "code": {**_TEXT, "description": "What programs decide by"},
            "request_id": {**_TEXT, "description": "The X-Request-Id of this response"},
        },
    },
    "ValidationFailure": {
        "title": "ValidationFailure",
        "description": "Everything that is wrong with the values of a request, at once.",
        "type": "object",
        "required": ["detail"],
        "properties": {
            "detail": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/components/schemas/ValidationError"},
            }
        },
    },
    "ValidationError": {
        "title": "ValidationError",
        "type": "object",
        "required": ["loc", "msg", "type"],
        "properties": {
            "loc": {
                "type": "array",
                "items": {"anyOf": [_TEXT, {"type": "integer"}]},
                "description": "Where: begins with body, query, path or header",
            },
            "msg": _TEXT,
            "type": {**_TEXT, "description": "Pydantic's name of what is wrong"},
            "input": {"description": "The value, where it is a scalar and not sensitive"},
            "ctx": {"type": "object", "description": "The limits that were not kept"},
        },
    },
}


def errors_of(operation: Operation) -> list[type[e.BanksideError]]:
    """Every error that the operation may answer with."""
    found: list[type[e.BanksideError]] = [*ALWAYS, *operation.errors]
    found.append(e.InsufficientScope if operation.scope else e.InsufficientRole)
    if operation.role is not None:
        found.append(e.SessionEnded)
    if operation.takes_body:
        found += WITH_BODY
    if operation.takes_idempotency_key:
        found += (e.IdempotencyKeyReused, e.IdempotencyInProgress, e.Abandoned)
    found.append(e.ProviderTimeout if operation.is_read else e.OutcomePending)
    if operation.path_fields:
        found.append(e.NotFound)
    return sorted(dict.fromkeys(found), key=lambda error: (error.status, error.code))


def responses_of(operation: Operation) -> dict[str, Schema]:
    """The operation's responses of 4xx and 5xx, by status."""
    by_status: dict[int, list[type[e.BanksideError]]] = defaultdict(list)
    for error in errors_of(operation):
        by_status[error.status].append(error)
    responses = {
        str(status): _problem(operation, status, errors) for status, errors in by_status.items()
    }
    if operation.pending_id is not None:
        members = responses[str(e.OutcomePending.status)]["content"]["application/problem+json"]
        members["schema"]["properties"][operation.pending_id] = _PENDING_ID
    responses["422"] = {
        "description": "Values that are not allowed, all at once.",
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ValidationFailure"}}
        },
    }
    return dict(sorted(responses.items()))


def _detail(operation: Operation, error: type[e.BanksideError]) -> str:
    is_unanswered = error is e.OutcomePending and operation.is_query
    return e.LOOK_BEFORE_REPEATING if is_unanswered else error().detail


def _problem(operation: Operation, status: int, errors: list[type[e.BanksideError]]) -> Schema:
    headers = ["X-Request-Id"]
    if status in RETRIED_LATER or e.IdempotencyInProgress in errors:
        headers.append("Retry-After")
    members: dict[str, Schema] = {"code": {"enum": [error.code for error in errors]}}
    for error in errors:
        members |= EXTRA_MEMBERS.get(error.code, {})
    return {
        "description": "\n".join(
            f"- `{error.code}`: {_detail(operation, error)}" for error in errors
        ),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {
            "application/problem+json": {
                "schema": {
                    "allOf": [{"$ref": "#/components/schemas/Problem"}],
                    "properties": members,
                },
                "example": {
                    "type": f"urn:bankside:error:{errors[0].code}",
                    "title": HTTPStatus(status).phrase,
                    "status": status,
                    "detail": _detail(operation, errors[0]),
                    "code": errors[0].code,
                    "request_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
                },
            }
        },
    }
