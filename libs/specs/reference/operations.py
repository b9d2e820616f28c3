"""The operations, events and errors of the OpenAPI document, as the reference shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from libs.contracts.errors import Invalid, MethodNotAllowed
from libs.specs.advice import ADVICE
from libs.specs.operations import IDEMPOTENCY_KEY
from libs.specs.reference.fields import Field, Schemas
from libs.specs.reference.samples import Request, Sample, samples_of

FAMILIES = {"/partner/": "partner", "/customer/": "customer"}
EXAMPLE_ID = "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77"
"""Of what a document has no example for."""

Document = Mapping[str, Any]
Way = tuple[str, str, Document]
"""Method, path and operation."""
Parameter = tuple[str, Field]
"""With where it stands: path, query or header."""


@dataclass(frozen=True, slots=True)
class Error:
    status: int
    code: str
    """Empty for failed validation, which has none."""
    meaning: str
    advice: str


_METHOD_NOT_ALLOWED = Error(
    MethodNotAllowed.status,
    MethodNotAllowed.code,
    MethodNotAllowed().detail,
    ADVICE[MethodNotAllowed.code],
)
"""The document does not have it: no operation gives it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One way to call an operation.

    Args:
        parameters: in the path and the query.
    """

    operation_id: str
    family: str
    method: str
    path: str
    scope: str
    parameters: Sequence[Parameter]
    request: Request
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True)
class Operation:
    """What one or both families can do.

    Args:
        calls: of each family that can; the same but for their paths.
        answer: an example.
    """

    summary: str
    description: str
    is_extension: bool
    calls: Sequence[Call]
    parameters: Sequence[Parameter]
    body: Sequence[Field]
    answer_fields: Sequence[Field]
    answer: str
    errors: Sequence[Error]

    @property
    def id(self) -> str:
        return self.calls[0].operation_id


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    description: str
    fields: Sequence[Field]
    example: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A tag of the document."""

    name: str
    description: str
    operations: Sequence[Operation]


class Reference:
    """Everything that the pages show of the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self.version: str = document["info"]["version"]
        self.introduction: str = document["info"]["description"]
        self.headers = [
            (scheme["name"], scheme["description"])
            for scheme in document["components"]["securitySchemes"].values()
        ]
        self.resources = [
            Resource(tag["name"], tag["description"], self._operations(tag["name"]))
            for tag in document["tags"]
        ]
        self.events = [
            self._event(kind, item["post"]) for kind, item in document["webhooks"].items()
        ]
        every = {
            error.code: error
            for resource in self.resources
            for operation in resource.operations
            for error in operation.errors
        }
        every[_METHOD_NOT_ALLOWED.code] = _METHOD_NOT_ALLOWED
        self.errors = sorted(every.values(), key=lambda error: (error.status, error.code))

    def _operations(self, tag: str) -> list[Operation]:
        """What both families can do, with the same answer, is one operation with two paths."""
        groups: dict[tuple[str, str, str], list[Way]] = {}
        for path, item in self._document["paths"].items():
            for method, operation in item.items():
                if tag in operation["tags"]:
                    alike = (method, _ending(path), str(self._answer(operation)["schema"]))
                    groups.setdefault(alike, []).append((method, path, operation))
        return [self._operation(ways) for ways in groups.values()]

    def _answer(self, operation: Document) -> Document:
        success = self._schemas.resolved(operation["responses"]["200"])
        found: Document = success["content"]["application/json"]
        return found

    def _operation(self, ways: Sequence[Way]) -> Operation:
        _, _, first = ways[0]
        content = first.get("requestBody", {}).get("content", {}).get("application/json", {})
        answer = self._answer(first)
        parameters = [self._schemas.resolved(item) for item in first["parameters"]]
        return Operation(
            summary=first["summary"],
            description=first["description"],
            is_extension=bool(first.get("x-extension")),
            calls=[self._call(*way) for way in ways],
            parameters=[self._parameter(item) for item in parameters],
            body=self._schemas.members(content["schema"]) if content else (),
            answer_fields=self._schemas.members(answer["schema"]),
            answer=_pretty(answer.get("example")),
            errors=[*self._errors(first["responses"])],
        )

    def _parameter(self, item: Document) -> Parameter:
        schema = {**item["schema"], "description": item["description"]}
        return item["in"], self._schemas.field(item["name"], schema, item.get("required", False))

    def _call(self, method: str, path: str, operation: Document) -> Call:
        parameters = [self._schemas.resolved(item) for item in operation["parameters"]]
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        target = path
        for item in parameters:
            if item["in"] == "path":
                example = quote(str(self._example(item)), safe="")
                target = target.replace(f"{{{item['name']}}}", example)
        wanted = [p for p in parameters if p["in"] == "query" and p.get("required")]
        if wanted:
            pairs = (f"{p['name']}={quote(str(self._example(p)), safe='')}" for p in wanted)
            target += "?" + "&".join(pairs)
        headers = {item["name"] for item in parameters if item["in"] == "header"}
        request = Request(
            method.upper(), target, content.get("example"), IDEMPOTENCY_KEY in headers
        )
        family = next(name for start, name in FAMILIES.items() if path.startswith(start))
        return Call(
            operation["operationId"],
            family,
            method.upper(),
            path,
            operation["x-scope"],
            [self._parameter(item) for item in parameters if item["in"] in ("path", "query")],
            request,
            samples_of(request),
        )

    def _example(self, parameter: Document) -> Any:
        schema = self._schemas.resolved(parameter["schema"])
        examples = schema.get("examples") or [schema.get("example")]
        found = parameter.get("example", examples[0])
        if found is not None:
            return found
        if parameter["name"] in ("account_id", "external_bank_account_id"):
            return "acc_0000000001"
        return EXAMPLE_ID

    def _errors(self, responses: Document) -> Iterable[Error]:
        for status, response in responses.items():
            if status == "200":
                continue
            for content in self._schemas.resolved(response)["content"].values():
                schema = content["schema"]
                for item in schema.get("oneOf", [schema]):
                    problem = self._schemas.resolved(item)
                    code = problem.get("properties", {}).get("code", {}).get("const", "")
                    yield Error(
                        int(status),
                        code,
                        problem.get("description", ""),
                        ADVICE[code or Invalid.code],
                    )

    def _event(self, kind: str, operation: Document) -> Event:
        content = operation["requestBody"]["content"]["application/json"]
        return Event(
            kind,
            operation["description"],
            self._schemas.members(content["schema"]),
            _pretty(content["example"]),
        )


def _ending(path: str) -> str:
    """A path without its family."""
    return path.removeprefix("/partner/reseller").removeprefix("/customer")


def _pretty(example: Any) -> str:
    return "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
