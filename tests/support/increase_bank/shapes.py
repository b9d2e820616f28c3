"""What may be asked and answered: the SDK's own types, strictly.

Requests are validated against the parameter types of `increase.types`, answers against its models. Neither may have a
field that the SDK does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

from increase import BaseModel as SdkModel
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tests.support.increase_bank.errors import InvalidParameters

Json = dict[str, Any]


class AnswerNotOfItsType(Exception):
    """The bank would have answered what Increase does not: an error in this package."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked(kind: Any, value: object, *, strict: bool = True) -> Any:
    """`value` as the parameters `kind`. Raises InvalidParameters."""
    try:
        return _exhausted(_adapter(kind).validate_python(value, strict=strict, extra="forbid"))
    except ValidationError as error:
        raise InvalidParameters([_problem(item) for item in error.errors()]) from None


def _exhausted(value: Any) -> Any:
    """pydantic validates what is declared as Iterable only as it is read."""
    if isinstance(value, dict):
        return {name: _exhausted(item) for name, item in value.items()}
    if isinstance(value, list | Iterator):
        return [_exhausted(item) for item in value]
    return value


def _problem(error: ErrorDetails) -> dict[str, str]:
    return {"field": ".".join(map(str, error["loc"])), "message": error["msg"]}


def rendered(model: type[SdkModel], value: Json) -> str:
    """The answer's JSON: fields that `value` lacks are null. Raises AnswerNotOfItsType."""
    text = json.dumps(completed(model, value), separators=(",", ":"))
    try:
        _adapter(model).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        raise AnswerNotOfItsType(f"{model.__name__}: {error}") from None
    return text


def completed(model: type[SdkModel], value: Json) -> Json:
    """`value` with null for each documented field that it lacks.

    A `source` is left as it is: it has the field that its category names and no other.
    """
    for name, nested, required in _fields(model):
        if name not in value:
            if not required:
                value[name] = None
        elif nested is not None:
            for item in _items(value[name]):
                completed(nested, item)
    return value


def _items(value: object) -> list[Json]:
    found = value if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, dict)]


@cache
def _fields(model: type[SdkModel]) -> tuple[tuple[str, type[SdkModel] | None, bool], ...]:
    """Name on the wire, the nested model, and whether a missing one is an error."""
    kept = model.__name__ == "Source"
    return tuple(
        (field.alias or name, _model_in(field.annotation), kept or field.is_required())
        for name, field in model.model_fields.items()
    )


def _model_in(annotation: Any) -> type[SdkModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, SdkModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)


def timestamp(microseconds: int) -> str:
    """ISO 8601 in UTC of microseconds since 1970."""
    return (
        datetime.fromtimestamp(microseconds / 1_000_000, UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z")
    )


def microseconds(moment: str) -> int:
    """The reverse of `timestamp`, for any offset. Raises InvalidParameters."""
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        raise InvalidParameters.of("timestamp", f"{moment!r} is not an ISO 8601 time") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    since = parsed - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def nested(query: Mapping[str, str]) -> Json:
    """A query as the SDK encodes it: dots go into objects, commas separate the values of `.in`."""
    found: Json = {}
    for name, value in query.items():
        outer, dot, inner = name.partition(".")
        if dot:
            found.setdefault(outer, {})[inner] = value.split(",") if inner == "in" else value
        else:
            found[outer] = value
    return found
