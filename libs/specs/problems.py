"""The responses that are no success: which an operation can give, and what they look like."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from http import HTTPStatus

from libs.contracts import errors as e
from libs.contracts.operation import Operation
from libs.contracts.principal import Family
from libs.contracts.wire_policies import WireLimit
from libs.specs.schemas import Schema, ref

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
    # Of reads and of writes without fields as well: a body that is sent all the same is read.
    e.MalformedJson,
    e.UnsupportedMediaType,
)
RETRIED_LATER = (429, 503)
REPLAYED = (404, 409)
"""What a service refuses with: the answer that is kept under a key."""
RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
UNCOUNTED = (401, 408, 413)
"""What a request is refused with before it counts for the rate of its key; all else may be after it."""
REPLAYED_HEADER = "Idempotent-Replayed"

_TEXT = {"type": "string"}

_NAMED_HEADERS = {"type": "array", "items": _TEXT, "description": "The headers in question"}

_INVALID = {
    "detail": [
        {
            "loc": ["body", "amount"],
            "msg": "Input should be a JSON number such as 12.50, not a string",
            "type": "decimal_type",
            "input": "12.50",
        }
    ]
}

_WIRE = {
    "transaction_id": {
        **_TEXT,
        "description": "Of the wire that it is about, where there is one",
    }
}
_REFUSED_WIRE = _WIRE | {
    "reason": {**_TEXT, "description": "As the wire has it, where it was recorded and refused"},
    "reason_detail": {
        **_TEXT,
        "description": "The bank's own words or code for the reason, where it gave some",
    },
}
_PENDING_ID = {**_TEXT, "description": "The id of what is pending, by which it can be asked for"}
_ASKED_FOR_ID = {**_TEXT, "description": "The id of what the first request asked for"}
_CUSTOMER_ID = {**_TEXT, "description": "Of the customer that it is about, where there is one"}

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
    e.InsufficientScope.code: {"scope": {**_TEXT, "description": "The scope that it needs"}},
    e.AlreadyExists.code: {"customer_id": _CUSTOMER_ID},
    e.AccountClosed.code: _REFUSED_WIRE,
    e.AccountRestricted.code: _REFUSED_WIRE,
    e.ExternalAccountNotLinked.code: _REFUSED_WIRE,
    e.InsufficientFunds.code: _REFUSED_WIRE,
    e.InvalidState.code: _WIRE,
    e.ProviderRefused.code: {**_REFUSED_WIRE, "customer_id": _CUSTOMER_ID},
    e.LimitExceeded.code: {
        **_WIRE,
        "limit": {
            **ref("WireLimit"),
            "description": "Which limit",
        },
        "allowed": {"type": "number", "description": "The limit: US dollars, or a number of wires"},
        "used": {"type": "number", "description": "What other wires have used of it"},
    },
}
"""Members of a problem beyond those that every problem has, by code."""

_REFERRED_TO: dict[str, Schema] = {
    "WireLimit": {
        "title": "WireLimit",
        "description": inspect.cleandoc(WireLimit.__doc__ or ""),
        "type": "string",
        "enum": [*WireLimit],
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
                "description": "At most 100 errors; one more of type `too_many_errors` says in `ctx.omitted` how many"
                " there are besides.",
                "items": ref("ValidationError"),
            }
        },
    },
    "ValidationError": {
        "title": "ValidationError",
        "description": "One value that is not allowed.",
        "type": "object",
        "required": ["loc", "msg", "type"],
        "properties": {
            "loc": {
                "type": "array",
                "items": {"anyOf": [_TEXT, {"type": "integer"}]},
                "description": "Where: begins with body, query, path or header.",
            },
            "msg": {**_TEXT, "description": "What is wrong, as a sentence for a person."},
            "type": {
                **_TEXT,
                "description": "Pydantic's name of what is wrong: what programs decide by.",
            },
            "input": {"description": "The value, where it is a scalar and not sensitive."},
            "ctx": {"type": "object", "description": "The limits that were not kept."},
        },
    },
}


def components_of(rows: Iterable[Operation]) -> dict[str, Schema]:
    """The schemas of all errors of these operations: one for each code."""
    errors = {error for row in rows for error in errors_of(row)}
    pending = {row.pending_id for row in rows if row.pending_id}
    named = {_name(error): _problem_schema(error) for error in errors}
    for name in pending:
        for error in (e.OutcomePending, e.IdempotencyInProgress, e.Abandoned):
            named[_name(error)]["properties"][name] = _PENDING_ID
        named[_name(e.IdempotencyKeyReused)]["properties"][name] = _ASKED_FOR_ID
    return named | _REFERRED_TO


def errors_of(operation: Operation) -> list[type[e.BanksideError]]:
    """Every error that the operation may answer with, but for a read that is sent with a body."""
    found: list[type[e.BanksideError]] = [*ALWAYS, *operation.errors]
    found.append(e.InsufficientScope if operation.scope else e.InsufficientRole)
    if operation.role is not None:
        found.append(e.SessionEnded)
    if operation.takes_idempotency_key:
        found += (e.IdempotencyKeyReused, e.IdempotencyInProgress, e.Abandoned)
        if operation.family is not Family.OPERATOR:
            found.append(e.IdempotencyKeyRequired)
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
    responses["422"] = {
        "description": "Values that are not allowed, all at once.",
        "headers": _headers(["X-Request-Id", *RATE_HEADERS]),
        "content": {"application/json": {"schema": ref("ValidationFailure"), "example": _INVALID}},
    }
    return dict(sorted(responses.items()))


def share_responses(operations: list[Schema]) -> dict[str, Schema]:
    """The commonest response of each status that is no success, by name; the operations now refer to it."""
    by_status: dict[str, list[Schema]] = defaultdict(list)
    for operation in operations:
        for status, response in operation["responses"].items():
            if status != "200":
                by_status[status].append(response)
    shared: dict[str, Schema] = {}
    for status, responses in sorted(by_status.items()):
        commonest = max(responses, key=responses.count)
        if responses.count(commonest) == 1:
            continue
        name = HTTPStatus(int(status)).phrase.title().replace(" ", "")
        shared[name] = commonest
        for operation in operations:
            if operation["responses"].get(status) == commonest:
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def _detail(operation: Operation, error: type[e.BanksideError]) -> str:
    is_unanswered = error is e.OutcomePending and operation.is_query
    return e.LOOK_BEFORE_REPEATING if is_unanswered else error().detail


def _problem(operation: Operation, status: int, errors: list[type[e.BanksideError]]) -> Schema:
    headers = ["X-Request-Id"]
    if status in RETRIED_LATER or e.IdempotencyInProgress in errors:
        headers.append("Retry-After")
    if status not in UNCOUNTED:
        headers += RATE_HEADERS
    if operation.takes_idempotency_key and status in REPLAYED:
        headers.append(REPLAYED_HEADER)
    first, *others = errors
    schema = ref(_name(first))
    if others:
        mapping = {error.code: ref(_name(error))["$ref"] for error in errors}
        schema = {
            "oneOf": [ref(_name(error)) for error in errors],
            "discriminator": {"propertyName": "code", "mapping": mapping},
        }
    return {
        "description": "\n".join(
            f"- `{error.code}`: {_detail(operation, error)}" for error in errors
        ),
        "headers": _headers(headers),
        "content": {
            "application/problem+json": {
                "schema": schema,
                "example": {
                    "type": f"urn:bankside:error:{first.code}",
                    "title": HTTPStatus(status).phrase,
                    "status": status,
                    "detail": _detail(operation, first),
                    "code": first.code,
                    "request_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
                },
            }
        },
    }


def _headers(names: Iterable[str]) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _name(error: type[e.BanksideError]) -> str:
    return f"{error.__name__}Problem"


def _problem_schema(error: type[e.BanksideError]) -> Schema:
    """A problem document (RFC 9457) of this code."""
    properties: dict[str, Schema] = {
        "type": {
            **_TEXT,
            "const": f"urn:bankside:error:{error.code}",
            "description": "Names the code; it is no address of a page.",
        },
        "title": {**_TEXT, "description": "The status in words."},
        "status": {"type": "integer", "const": error.status, "description": "The HTTP status."},
        "detail": {**_TEXT, "description": "What is wrong, as a sentence for a person."},
        "code": {**_TEXT, "const": error.code, "description": "What programs decide by."},
        "request_id": {
            **_TEXT,
            "description": "The `X-Request-Id` of this answer or, in an error that is repeated, of the first request:"
            " name it when you ask for help.",
        },
    }
    return {
        "title": _name(error),
        "description": error().detail,
        "type": "object",
        "required": list(properties),
        "properties": properties | EXTRA_MEMBERS.get(error.code, {}),
    }
