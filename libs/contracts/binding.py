"""From the parts of an HTTP request to a valid command, or all of its errors at once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from libs.contracts import patterns
from libs.contracts.errors import (
    MAX_ERRORS,
    ErrorDetail,
    Invalid,
    MalformedJson,
    NotFound,
    too_many_errors,
)
from libs.contracts.exact_json import NotExactJson, decode_request
from libs.contracts.ids import OurId, id_of
from libs.contracts.model import Command, Model, model_of
from libs.contracts.operation import Operation
from libs.contracts.sensitive import SensitiveShape

EXTRA = "Extra inputs are not permitted"
VALUE_ERROR = "Value error, "
"""What Pydantic puts before the sentences of our own rules; callers get these alone."""
NOT_AN_OBJECT = "Input should be a JSON object"
SENTENCES = {
    "dict_type": NOT_AN_OBJECT,
    "int_parsing": "Input should be an integer of at most 18 digits",
    "model_type": NOT_AN_OBJECT,
    "url_parsing": "Input should be an absolute URL, such as https://example.com",
}
"""In place of Pydantic's, by its types: those that speak of Python, or do not say what is taken."""
PATTERN_SENTENCES = {
    patterns.FILTER_ID: "Input should be 1 to 128 printable ASCII characters without spaces",
    patterns.HEADER_TEXT: "Input should be at most 255 printable ASCII characters",
}
"""In place of Pydantic's `string_pattern_mismatch`, by the pattern."""
LONGEST_NAME_COMPARED, NAMES_COMPARED = 64, 10
"""Comparing names costs time: the nearest name is shown for unknown names up to this length, and for this many of them
in a request.
"""

_PATH_VALUE = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_SCALARS = (str, int, float, Decimal)


def bind(
    operation: Operation,
    path: Mapping[str, str],
    query: Iterable[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> Command:
    """The command of a request, validated.

    Raises:
        MalformedJson: the body is not an exact JSON text, or is missing where one is needed.
        Invalid: everything that is wrong, by Pydantic's types, `loc` beginning with where the value came from.
        NotFound: a path value that no id can have.
    """
    if not all(_PATH_VALUE.fullmatch(value) for value in path.values()):
        raise NotFound
    values: dict[str, Any] = dict(path)
    sources = dict.fromkeys(path, "path")
    errors: list[ErrorDetail] = []
    for field, header in operation.headers:
        if headers is not None and header in headers:
            values[field], sources[field] = headers[header], "header"
    from_headers = {field for field, _ in operation.headers}
    for name, value in query:
        if not operation.is_read or name in from_headers:
            errors.append(_error("query", name, "extra_forbidden", _no_query(operation)))
            continue
        if name in sources:
            repeated = sources[name] == "query"
            errors.append(
                _error("query", name, "value_error", "the parameter is repeated")
                if repeated
                else _error("query", name, "extra_forbidden", f"{EXTRA}: it stands in the path")
            )
            continue
        values[name], sources[name] = value, "query"
    if operation.takes_body or (not operation.is_read and body):
        _take_body(_object(body), path, values, sources, errors)
    return _validate(operation.command, values, sources, errors, operation)


def require_our_ids(operation: Operation, path: Mapping[str, str]) -> None:
    """Called once a request is valid. Raises NotFound: what the path has in the place of an id of ours is none."""
    fields = operation.command.model_fields
    for name, value in path.items():
        if any(isinstance(item, OurId) for item in fields[name].metadata):
            id_of(value)


def _object(body: bytes) -> Any:
    if not body:
        raise MalformedJson("The body is empty: this operation takes a JSON object.")
    try:
        return decode_request(body)
    except NotExactJson as error:
        raise MalformedJson(f"The body is not valid JSON: {error}.") from None


def _take_body(
    content: Any,
    path: Mapping[str, str],
    values: dict[str, Any],
    sources: dict[str, str],
    errors: list[ErrorDetail],
) -> None:
    if not isinstance(content, dict):
        errors.append({"loc": ["body"], "msg": SENTENCES["dict_type"], "type": "dict_type"})
        return
    for name, value in content.items():
        if name in path or sources.get(name) in ("query", "header"):
            place = "path" if name in path else sources[name]
            errors.append(
                _error("body", name, "extra_forbidden", f"{EXTRA}: it stands in the {place}")
            )
        else:
            values[name], sources[name] = value, "body"


def _validate(
    command: type[Command],
    values: dict[str, Any],
    sources: Mapping[str, str],
    errors: list[ErrorDetail],
    operation: Operation,
) -> Command:
    default_source = "query" if operation.is_read else "body"
    bound: Command | None = None
    not_an_object = any(error["loc"] == ["body"] for error in errors)
    try:
        # By the names of the document alone, also where our own code may say a field by another one.
        bound = command.model_validate(values, by_alias=True, by_name=False)
    except ValidationError as error:
        if not not_an_object:
            errors += error_details(error, command, sources, default_source)
    if not not_an_object:
        errors += [
            {"loc": [default_source, *loc], "msg": rule, "type": "value_error"}
            for loc, rule in command.broken_rules(values)
        ]
    if errors or bound is None:
        raise Invalid(errors)
    return bound


def _error(source: str, name: str, kind: str, message: str) -> ErrorDetail:
    return {"loc": [source, name], "msg": message, "type": kind}


def error_details(
    error: ValidationError,
    model: type[Model],
    sources: Mapping[str, str],
    default_source: str,
) -> list[ErrorDetail]:
    """Pydantic's errors as the interface shows them: inputs only where they are scalars and not sensitive.

    At most `MAX_ERRORS`, and one that says how many there are besides.
    """
    shape = SensitiveShape.of(model)
    compared = 0
    details: list[ErrorDetail] = []
    for item in itertools.islice(error.errors(include_url=False), MAX_ERRORS):
        loc = list(item["loc"])
        source = sources.get(str(loc[0]), default_source) if loc else default_source
        detail: ErrorDetail = {
            "loc": [source, *loc],
            "msg": _sentence(item),
            "type": item["type"],
        }
        if item["type"] == "extra_forbidden" and compared < NAMES_COMPARED:
            compared += 1
            detail["msg"] += _nearest(str(loc[-1]), _names_at(model, loc[:-1], sources, source))
        value = item["input"]
        known = item["type"] != "extra_forbidden"  # what stands in an unknown field may be anything
        if (
            known
            and item["type"] != "string_unicode"  # it cannot be shown
            and (value is None or isinstance(value, _SCALARS))
            and not _is_sensitive(shape, loc)
        ):
            detail["input"] = value
        context = {
            key: entry
            if isinstance(entry, str | int | float | bool) or entry is None
            else str(entry)
            for key, entry in item.get("ctx", {}).items()
        }
        if context:
            detail["ctx"] = context
        details.append(detail)
    if error.error_count() > MAX_ERRORS:
        details.append(too_many_errors(error.error_count() - MAX_ERRORS))
    return details


def _sentence(error: ErrorDetails) -> str:
    """What a caller reads of one of Pydantic's errors."""
    if error["type"] == "string_pattern_mismatch":
        return PATTERN_SENTENCES.get(error["ctx"]["pattern"], error["msg"])
    return SENTENCES.get(error["type"], error["msg"].removeprefix(VALUE_ERROR))


def _no_query(operation: Operation) -> str:
    if operation.is_read:
        return f"{EXTRA}: it stands in a header"
    return f"{EXTRA}: this operation takes no query parameters, its values stand in the body"


def _names_at(
    model: type[Model], place: list[str | int], sources: Mapping[str, str], source: str
) -> list[str]:
    """The names that an object takes at this place of a command; not those that come from elsewhere."""
    kind: Any = model
    for step in place:
        if isinstance(step, str):
            info = kind.model_fields.get(step)
            kind = model_of(info.annotation) if info is not None else None
        if kind is None:
            return []
    names = [info.alias or name for name, info in kind.model_fields.items()]
    return names if place else [name for name in names if sources.get(name, source) == source]


def _nearest(name: str, allowed: list[str]) -> str:
    if len(name) > LONGEST_NAME_COMPARED:
        return ""
    import difflib  # noqa: PLC0415 - few requests have a wrong name

    found = difflib.get_close_matches(name, allowed, n=1)
    return f"; did you mean `{found[0]}`?" if found else ""


def _is_sensitive(shape: SensitiveShape, loc: list[str | int]) -> bool:
    """Whether the place is sensitive, or was meant to hold something that is."""
    for step in loc:
        if shape.whole:
            return True
        following = shape.items if isinstance(step, int) else shape.members.get(step)
        if following is None:
            return False
        shape = following
    return bool(shape)
