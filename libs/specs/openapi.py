"""The interface as an OpenAPI 3.1 document, and that of operators as another one, read off the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from libs.contracts.events import API_VERSION, EVENT_TYPES, EventType
from libs.contracts.operation import Operation
from libs.contracts.principal import Family
from libs.contracts.table import OPERATOR_OPERATIONS, PUBLIC_OPERATIONS
from libs.specs import problems
from libs.specs.event_schemas import event_schema
from libs.specs.examples import REQUESTS
from libs.specs.schemas import Schema, key_of, schemas_of, used_by

DESCRIPTION = """\
Banking as a service for business customers: onboarding, accounts, balances, statements, transactions, deposit
locations, settlement, ACH, wires, webhooks. Every request is signed.

**Signing.** The signature is the lower-case hex HMAC-SHA256, keyed with the secret, of seven parts joined by
newlines: `v1`, the timestamp, the nonce and the subscription key as sent, the method in upper case, the request
target exactly as sent (path and query), and the lower-case hex SHA-256 of the raw body (of nothing when there is
none).

**Answers.** Success is 200 with an envelope of `message` and `data`. Numbers that are money are exact: read them
without floating point. Failed validation is 422 with `detail`; every other error is `application/problem+json` with
a `code`.

**Retrying.** Send a POST, PUT or PATCH with an `Idempotency-Key`. A retry signs anew and keeps the key; it returns the
first answer.

**Webhooks.** Each event is posted to the callback URLs of the subscriptions that ask for its type, at least once and in
no promised order, and can be listed under `events`. Deliveries are signed as in Standard Webhooks, with the secret of
the subscription, and answered with any 2xx.
"""

OPERATOR_DESCRIPTION = """\
What operators may see and do, on a listener of its own. Requests are signed as those of all other callers; a key
belongs to an operator, who has a role: viewers read, operators act, admins also manage keys and operators.

**Writes.** Each has a `reason` and is recorded in the audit under the operator's name. There is no Idempotency-Key:
504 `outcome_pending` says that a write may have been done; look before you repeat it.

**Lists.** `after` is the `next` of the page before. A list over several services names in `unreachable` those that did
not answer, whose rows it lacks.
"""

AUTHENTICATION: dict[str, Schema] = {
    "X-API-SUBSCRIPTION-KEY": {
        "description": "The public id of the key, which names one tenant",
        "schema": {"type": "string", "pattern": "^sub_[A-Za-z0-9]{22,}$"},
    },
    "X-API-TIMESTAMP": {
        "description": "Unix time in whole seconds, within 300 s of the server's",
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-API-NONCE": {
        "description": "Never sent before with this key and timestamp",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{16,128}$"},
    },
    "X-API-SIGNATURE": {
        "description": "See Signing",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    },
}
IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Carries the request out once, however often it is sent; kept 24 hours, of a wire for ever",
    "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
}
HEADERS: dict[str, Schema] = {
    "X-Request-Id": {
        "description": "The caller's, if it sent one; else one of ours",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait",
        "schema": {"type": "integer", "minimum": 0},
    },
    "RateLimit-Limit": {"schema": {"type": "integer"}},
    "RateLimit-Remaining": {"schema": {"type": "integer"}},
    "RateLimit-Reset": {"description": "Seconds", "schema": {"type": "integer"}},
    "Idempotent-Replayed": {
        "description": "`true` when this is the stored answer of an earlier request",
        "schema": {"type": "string", "const": "true"},
    },
}
DELIVERY_HEADERS = {
    "webhook-id": "The event's id, the same at every attempt",
    "webhook-timestamp": "Unix time of the attempt in whole seconds",
    "webhook-signature": "`v1,` and the base64 HMAC-SHA256 of id, timestamp and body joined by dots; one for each "
    "secret that is active, separated by spaces",
}
EVENTS_TAG = "events"
PATH_VALUE: Schema = {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"}


def openapi_document() -> dict[str, Any]:
    """The whole document of partners and customers, as plain JSON values."""
    webhooks = [*EVENT_TYPES.values()]
    tags = [
        {"name": Family.PARTNER, "description": "For resellers: every customer they onboarded"},
        {"name": Family.CUSTOMER, "description": "For one customer"},
        {"name": EVENTS_TAG, "description": "What is posted to callback URLs"},
    ]
    return _document("Bankside", DESCRIPTION, PUBLIC_OPERATIONS, tags, webhooks)


def operator_document() -> dict[str, Any]:
    """The whole document of operators, as plain JSON values."""
    tags = [{"name": Family.OPERATOR, "description": "For operators, over all tenants"}]
    rows = OPERATOR_OPERATIONS
    return _document("Bankside, for operators", OPERATOR_DESCRIPTION, rows, tags, ())


def _document(
    title: str,
    description: str,
    rows: Sequence[Operation],
    tags: list[Schema],
    events: Sequence[EventType],
) -> dict[str, Any]:
    schemas, definitions = schemas_of(
        [(row.command, "request") for row in rows]
        + [(row.reply, "reply") for row in rows]
        + [(row.pagination, "reply") for row in rows if row.pagination]
        + [(event.data, "reply") for event in events]
    )
    paths: dict[str, dict[str, Schema]] = {}
    components = dict(definitions)
    for row in rows:
        command = definitions[row.command.__name__]
        if row.takes_body:
            components[row.command.__name__] = _body_schema(row, command)
        data = schemas[key_of(row.reply), "reply"]
        page = schemas[key_of(row.pagination), "reply"] if row.pagination else None
        paths.setdefault(row.path or "", {})[str(row.method).lower()] = _operation(
            row, command, _envelope(row, data, page)
        )
    webhooks = {
        event.name: {"post": _webhook(event, schemas[key_of(event.data), "reply"])}
        for event in events
    }
    parameters = {
        name: {"name": name, "in": "header", "required": True, **described}
        for name, described in AUTHENTICATION.items()
    }
    if any(row.takes_idempotency_key for row in rows):
        parameters[IDEMPOTENCY_KEY["name"]] = IDEMPOTENCY_KEY
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": API_VERSION,
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        **({"webhooks": webhooks} if webhooks else {}),
        "components": {
            "schemas": used_by([paths, webhooks], components | problems.COMPONENTS),
            "headers": HEADERS,
            "parameters": parameters,
        },
    }


def _operation(row: Operation, command: Schema, envelope: Schema) -> Schema:
    described: Schema = {
        "operationId": row.name,
        "tags": [str(row.family)],
        "summary": row.summary,
        **_permission(row),
        "parameters": _parameters(row, command),
        "responses": {
            "200": {
                "description": row.message,
                "headers": {name: _ref("headers", name) for name in _success_headers(row)},
                "content": {"application/json": {"schema": envelope}},
            },
            **problems.responses_of(row),
        },
    }
    if row.extension:
        described["x-extension"] = True
    if row.takes_body:
        content: Schema = {"schema": _ref("schemas", row.command.__name__)}
        if row.name in REQUESTS:
            content["example"] = REQUESTS[row.name]
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    return described


def _permission(row: Operation) -> Schema:
    if row.for_console:
        return {"x-role": "console"}
    return {"x-role": str(row.role)} if row.role else {"x-scope": str(row.scope)}


def _webhook(event: EventType, data: Schema) -> Schema:
    return {
        "operationId": event.name,
        "tags": [EVENTS_TAG],
        "summary": f"The event {event.name}",
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
            for name, description in DELIVERY_HEADERS.items()
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": event_schema(event, data)}},
        },
        "responses": {
            "2XX": {"description": "Received. Anything else is tried again later."},
            "410": {"description": "Nothing more is wanted: the subscription becomes unavailable."},
        },
    }


def _parameters(row: Operation, command: Schema) -> list[Schema]:
    properties = command.get("properties", {})
    required = command.get("required", [])
    headers = dict(row.headers)
    parameters: list[Schema] = [_ref("parameters", name) for name in AUTHENTICATION]
    if row.takes_idempotency_key:
        parameters.append(_ref("parameters", "Idempotency-Key"))
    for name, schema in properties.items():
        if name in row.path_fields:
            place, public, described = "path", name, {**PATH_VALUE, **schema}
        elif name in headers:
            place, public, described = "header", headers[name], _never_null(schema)
        elif row.is_read:
            place, public, described = "query", name, _never_null(schema)
        else:
            continue
        parameters.append(
            {
                "name": public,
                "in": place,
                "required": place == "path" or name in required,
                "schema": described,
            }
        )
    return parameters


def _never_null(schema: Schema) -> Schema:
    """A parameter is absent rather than null."""
    variants = [item for item in schema.get("anyOf", []) if item != {"type": "null"}]
    if len(variants) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**variants[0], **rest}


def _body_schema(row: Operation, command: Schema) -> Schema:
    """The command without what comes from the path or a header."""
    elsewhere = {*row.path_fields, *(field for field, _ in row.headers)}
    body = dict(command)
    body["properties"] = {k: v for k, v in command["properties"].items() if k not in elsewhere}
    required = [name for name in command.get("required", []) if name not in elsewhere]
    body.pop("required", None)
    return {**body, "required": required} if required else body


def _envelope(row: Operation, data: Schema, pagination: Schema | None) -> Schema:
    properties: dict[str, Schema] = {
        "message": {"type": "string", "examples": [row.message]},
        "data": data,
    }
    if pagination is not None:
        properties["pagination"] = pagination
    if row.as_of_date:
        properties["as_of_date"] = {
            "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]
        }
    return {"type": "object", "required": list(properties), "properties": properties}


def _success_headers(row: Operation) -> list[str]:
    names = ["X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
    return [*names, "Idempotent-Replayed"] if row.takes_idempotency_key else names


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}
