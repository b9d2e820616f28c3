"""The document's operations as the clients' generators take them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from libs.specs.operations import IDEMPOTENCY_KEY
from libs.specs.schemas import Schema, resolved

EVENT = "DeliveredEvent"
"""The schema of an event as it is listed, of any type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body."""

    name: str
    schema: Schema
    required: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One operation.

    Args:
        body: the name of the schema of its body.
        data: the schema of what `data` of its success is.
        pages: how its list goes on: by the parameter `page`, by `after`, or not at all.
    """

    operation_id: str
    method: str
    path: str
    summary: str
    path_names: tuple[str, ...]
    query: tuple[Field, ...]
    headers: tuple[Field, ...]
    body: str | None
    data: Schema
    pages: str | None
    takes_idempotency_key: bool

    @property
    def is_list(self) -> bool:
        return self.data.get("type") == "array"


def rows_of(document: Schema) -> list[Row]:
    """Every operation of the document, in its order."""
    return [
        _row(document, path, method.upper(), operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]


def name_of(reference: str) -> str:
    """The component that a `$ref` names."""
    return reference.rpartition("/")[2]


def snake_case(name: str) -> str:
    """`send_wire` of `sendWire`."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def _row(document: Schema, path: str, method: str, operation: Schema) -> Row:
    parameters = [resolved(document, item) for item in operation["parameters"]]
    envelope = operation["responses"]["200"]["content"]["application/json"]["schema"]
    data = document["components"]["schemas"][name_of(envelope["$ref"])]["properties"]["data"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    query = _fields(parameters, "query")
    return Row(
        operation_id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        path_names=tuple(re.findall(r"{(\w+)}", path)),
        query=query,
        headers=_fields(parameters, "header"),
        body=name_of(body["schema"]["$ref"]) if body else None,
        data=data,
        pages=next((field.name for field in query if field.name in {"page", "after"}), None),
        takes_idempotency_key=any(item["name"] == IDEMPOTENCY_KEY for item in parameters),
    )


def _fields(parameters: list[Any], place: str) -> tuple[Field, ...]:
    return tuple(
        Field(item["name"], item["schema"], item["required"])
        for item in parameters
        if item["in"] == place and item["name"] != IDEMPOTENCY_KEY
    )
