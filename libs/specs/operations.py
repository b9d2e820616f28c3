"""One row of the table as an operation of the OpenAPI document: parameters, body, envelope, responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from libs.contracts.operation import Operation
from libs.specs import problems
from libs.specs.example_answers import example_answer
from libs.specs.examples import REQUESTS
from libs.specs.links import links_of
from libs.specs.schemas import Schema, component_name, ref

IDEMPOTENCY_KEY = "Idempotency-Key"
PATH_VALUE: Schema = {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,128}$"}
PARAMETERS: dict[str, Schema] = {
    IDEMPOTENCY_KEY: {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "required": False,
        "description": "Has the request carried out once, however often it is sent. A retry is signed anew, keeps"
        " key and body, and gets the first answer, with `Idempotent-Replayed: true`. Kept for 24 hours, of a wire"
        " for ever.",
        "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
        "example": "invoice-2047",
    }
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
    "RateLimit-Limit": {
        "description": "Requests of this class that the key may make in a minute",
        "schema": {"type": "integer"},
    },
    "RateLimit-Remaining": {
        "description": "Requests that are left now",
        "schema": {"type": "integer"},
    },
    "RateLimit-Reset": {
        "description": "Seconds until all of them are there again",
        "schema": {"type": "integer"},
    },
    "Idempotent-Replayed": {
        "description": "`true` when this is the stored answer of an earlier request",
        "schema": {"type": "string", "const": "true"},
    },
}


def operation_object(
    row: Operation, command: Schema, envelope: str, rows: Sequence[Operation]
) -> Schema:
    """The operation of a row.

    Args:
        rows: those of the document, to which its answer may link.
        command: the schema of all fields of its command.
        envelope: the name of the component that describes its success.
    """
    success: Schema = {"schema": ref(envelope)}
    if (example := example_answer(row)) is not None:
        success["example"] = example
    links = links_of(row, rows)
    described: Schema = {
        "operationId": row.operation_id,
        "tags": [tag_of(row)],
        "summary": row.summary,
        "description": command.get("description") or row.summary,
        **_permission(row),
        "parameters": _parameters(row, command),
        "responses": {
            "200": {
                "description": row.message,
                "headers": {name: _header(name) for name in _success_headers(row)},
                "content": {"application/json": success},
                **({"links": links} if links else {}),
            },
            **problems.responses_of(row),
        },
    }
    if row.extension:
        described["x-extension"] = True
    if row.takes_body:
        content: Schema = {"schema": ref(row.command.__name__)}
        if row.name in REQUESTS:
            content["example"] = REQUESTS[row.name]
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    return described


def tag_of(row: Operation) -> str:
    """What the operation is about; of operators' ones by the path, as `dead-letters`."""
    return str(row.resource or (row.path or "").split("/")[2])


def body_schema(row: Operation, command: Schema) -> Schema:
    """The command without what comes from the path or a header."""
    elsewhere = {*row.path_fields, *(field for field, _ in row.headers)}
    body = dict(command)
    body["properties"] = {k: v for k, v in command["properties"].items() if k not in elsewhere}
    required = [name for name in command.get("required", []) if name not in elsewhere]
    body.pop("required", None)
    return {**body, "required": required} if required else body


def envelope_name(row: Operation) -> str:
    """Of what `data` is: `WireEnvelope`, `WireListEnvelope`, `EmptyEnvelope`."""
    reply: Any = row.reply
    if reply is None:
        return "EmptyEnvelope"
    if type(None) in get_args(reply):
        (reply,) = (item for item in get_args(reply) if item is not type(None))
    is_list = get_origin(reply) is list
    model = get_args(reply)[0] if is_list else reply
    return f"{component_name(model.__name__)}{'List' if is_list else ''}Envelope"


def envelope_schema(row: Operation, data: Schema, pagination: Schema | None) -> Schema:
    properties: dict[str, Schema] = {
        "message": {
            "type": "string",
            "description": "What was done, as a sentence for a person.",
        },
        "data": {"description": "What was asked for.", **data},
    }
    if row.reply is None:
        properties["data"]["description"] = "Always null: there is nothing to return."
    if pagination is not None:
        properties["pagination"] = {"description": "Where this page stands.", **pagination}
    if row.as_of_date:
        properties["as_of_date"] = {
            "description": "The day of the load that is shown; null before any load.",
            "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
        }
    name = envelope_name(row)
    about = "The answer of a success: what was done, and what was asked for."
    return {
        "title": name,
        "description": about,
        "type": "object",
        "required": [*properties],
        "properties": properties,
    }


def _permission(row: Operation) -> Schema:
    if row.for_console:
        return {"x-role": "console"}
    return {"x-role": str(row.role)} if row.role else {"x-scope": str(row.scope)}


def _parameters(row: Operation, command: Schema) -> list[Schema]:
    properties = command.get("properties", {})
    required = command.get("required", [])
    headers = dict(row.headers)
    parameters: list[Schema] = []
    if row.takes_idempotency_key:
        parameters.append({"$ref": f"#/components/parameters/{IDEMPOTENCY_KEY}"})
    for name, schema in properties.items():
        if name in row.path_fields:
            place, public, shape = "path", name, {**PATH_VALUE, **schema}
        elif name in headers:
            place, public, shape = "header", headers[name], _never_null(schema)
        elif row.is_read:
            place, public, shape = "query", name, _never_null(schema)
        else:
            continue
        shape = dict(shape)
        parameter: Schema = {
            "name": public,
            "in": place,
            "required": place == "path" or name in required,
        }
        if description := shape.pop("description", None):
            parameter["description"] = description
        parameters.append({**parameter, "schema": shape})
    return parameters


def _never_null(schema: Schema) -> Schema:
    """A parameter is absent rather than null."""
    variants = [item for item in schema.get("anyOf", []) if item != {"type": "null"}]
    if len(variants) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**variants[0], **rest}


def _success_headers(row: Operation) -> list[str]:
    names = ["X-Request-Id", *problems.RATE_HEADERS]
    return [*names, problems.REPLAYED_HEADER] if row.takes_idempotency_key else names


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}
