"""The generated modules of the Python client: models, parameters, operations, and methods of both kinds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from libs.specs.advice import ADVICE
from libs.specs.clients.rows import EVENT, Field, Row, name_of, rows_of, snake_case
from libs.specs.schemas import Schema, ref, references, used_by

FOLDER = Path(__file__).parents[2] / "python_client" / "src" / "bankside_client"
FORMATS = {"decimal": "Decimal", "date": "date", "date-time": "datetime"}
SCALARS = {"string": "str", "integer": "int", "boolean": "bool", "null": "None"}
MADE = "\n\nMade by `python -m libs.specs.clients` of the interface's document: do not edit.\n"
PASSED = "path_values: tuple[str | UUID, ...], values: Mapping[str, Any]"
FUTURE = "from __future__ import annotations\n"
LISTED_VALUES = 64
"""A longer enumeration, as that of countries, is a string."""
_FORMAT_SECONDS = 60


def python_modules(document: Schema) -> dict[Path, str]:
    """The generated modules by their files."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    rows = rows_of(document)
    made = {
        "advice.py": _advice(),
        "models.py": _models(schemas, rows),
        "params.py": _params(schemas, rows),
        "operations.py": _operations(rows),
        "methods.py": _methods(rows, is_async=False),
        "async_methods.py": _methods(rows, is_async=True),
    }
    return {FOLDER / name: _formatted(FOLDER / name, text) for name, text in made.items()}


def _advice() -> str:
    lines = (f"{code!r}: {sentence!r}," for code, sentence in sorted(ADVICE.items()))
    return "\n".join(
        (
            f'"""What to do about each error, by its code. {MADE}"""',
            FUTURE,
            "ADVICE = {",
            *lines,
            "}",
        )
    )


def _models(schemas: dict[str, Schema], rows: list[Row]) -> str:
    events = _event_data(schemas)
    roots = [*(row.data for row in rows), *map(ref, events.values())]
    used = used_by(roots, schemas).keys() - {EVENT}
    kinds = " | ".join(sorted(set(events.values())))
    data = (f"{name!r}: {kind}," for name, kind in sorted(events.items()))
    return "\n".join(
        (
            f'"""What answers and events hold. {MADE}"""\n',
            FUTURE,
            "from dataclasses import dataclass, field\nfrom datetime import date, datetime",
            "from decimal import Decimal\nfrom typing import Any, Literal\n",
            *_enumerations(schemas, used),
            *(
                _dataclass(name, schemas[name])
                for name in sorted(used)
                if _is_object(schemas[name])
            ),
            f"EventData = {kinds}\n",
            "EVENT_DATA: dict[str, type[EventData]] = {",
            *data,
            "}",
            '"""What `data` of an event is, by its type."""',
        )
    )


def _params(schemas: dict[str, Schema], rows: list[Row]) -> str:
    bodies = {row.body for row in rows if row.body}
    queries = [row for row in rows if row.query or row.headers]
    fields = [field.schema for row in queries for field in _query(row)]
    used = used_by([*map(ref, bodies), *fields], schemas)
    return "\n".join(
        (
            f'"""What calls take. An amount is a Decimal or an int. {MADE}"""\n',
            FUTURE,
            "from datetime import date, datetime",
            "from decimal import Decimal\nfrom typing import Literal, NotRequired, TypedDict",
            "from uuid import UUID\n",
            *_enumerations(schemas, used),
            *(
                _typed_dict(name, _properties(schemas[name]))
                for name in sorted(used)
                if _is_object(schemas[name])
            ),
            *(_typed_dict(_query_name(row), _query(row)) for row in queries),
        )
    )


def _operations(rows: list[Row]) -> str:
    models = references([row.data for row in rows]) - {EVENT}
    lines = []
    for row in rows:
        kind = _answer_type(row.data)
        more = f", pages={row.pages!r}" if row.pages else ""
        if row.body:
            more += ", takes_body=True"
        if row.headers:
            more += f", headers={tuple(field.name for field in row.headers)!r}"
        lines.append(
            f"{_constant(row)}: Operation[{kind}] = Operation("
            f"{row.method!r}, {row.path!r}, {kind}{more})"
        )
    return "\n".join(
        (
            f'"""The operations of the interface. {MADE}"""\n',
            FUTURE,
            "from bankside_client.events import Event",
            "from bankside_client.exchange import Operation",
            f"from bankside_client.models import {', '.join(sorted(models))}\n",
            *lines,
        )
    )


def _methods(rows: list[Row], *, is_async: bool) -> str:
    name, page = ("AsyncMethods", "AsyncPage") if is_async else ("Methods", "Page")
    models = references([row.data for row in rows]) - {EVENT}
    params = {row.body or _query_name(row) for row in rows if row.body or row.query or row.headers}
    prefix = "async " if is_async else ""
    about = "every operation as a coroutine" if is_async else "every operation"
    return "\n".join(
        (
            f'"""The methods of a client: {about}. {MADE}"""\n',
            FUTURE,
            "from abc import ABC, abstractmethod\nfrom collections.abc import Mapping",
            "from typing import Any, TypeVar, Unpack",
            "from uuid import UUID\n",
            "from bankside_client import operations",
            f"from bankside_client.answers import Answer, {page}",
            "from bankside_client.events import Event",
            "from bankside_client.exchange import Operation",
            f"from bankside_client.models import {', '.join(sorted(models))}",
            f"from bankside_client.params import {', '.join(sorted(params))}\n",
            'T = TypeVar("T")\n',
            f"class {name}(ABC):",
            '    """The operations; a write without an idempotency key gets a fresh one.',
            "",
            "    Raises:",
            "        BanksideError: of every method, see `bankside_client.errors`.",
            "        ValueError, TypeError: an argument has no form in a request; nothing was sent.",
            "        RuntimeError: the client is closed; nothing was sent.",
            '    """\n',
            "    @abstractmethod",
            f"    {prefix}def _call(self, operation: Operation[T], {PASSED},",
            "idempotency_key: str | None = None) -> Answer[T]: ...\n",
            "    @abstractmethod",
            f"    {prefix}def _list(self, operation: Operation[list[T]], {PASSED}) -> {page}[T]: ...\n",
            *(_method(row, page, is_async=is_async) for row in rows),
        )
    )


def _method(row: Row, page: str, *, is_async: bool) -> str:
    parts = ["self", *(f"{name}: str | UUID" for name in row.path_names)]
    passed = [
        f"operations.{_constant(row)}",
        f"({''.join(f'{name}, ' for name in row.path_names)})",
    ]
    if row.takes_idempotency_key:
        parts += ["*", "idempotency_key: str | None = None"]
    if row.body or row.query or row.headers:
        parts.append(f"**values: Unpack[{row.body or _query_name(row)}]")
        passed.append("values")
    else:
        passed.append("{}")
    if row.takes_idempotency_key:
        passed.append("idempotency_key")
    kind = _answer_type(row.data)
    wrapped = f"{page}[{kind[5:-1]}]" if row.is_list else f"Answer[{kind}]"
    call = f"self.{'_list' if row.is_list else '_call'}({', '.join(passed)})"
    return (
        f"    {'async ' if is_async else ''}def {snake_case(row.operation_id)}({', '.join(parts)})"
        f" -> {wrapped}:\n"
        f'        """{row.summary}.\n\n        `{row.method} {row.path}`\n        """\n'
        f"        return {'await ' if is_async else ''}{call}\n"
    )


def _constant(row: Row) -> str:
    return snake_case(row.operation_id).upper()


def _query_name(row: Row) -> str:
    return f"{row.operation_id[0].upper()}{row.operation_id[1:]}"


def _query(row: Row) -> tuple[Field, ...]:
    return (*row.query, *row.headers)


def _properties(schema: Schema) -> tuple[Field, ...]:
    required = schema.get("required", [])
    return tuple(
        Field(name, value, name in required) for name, value in schema.get("properties", {}).items()
    )


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object"


def _is_sensitive(schema: Schema) -> bool:
    return "x-sensitive" in schema or any(map(_is_sensitive, schema.get("anyOf", ())))


def _enumerations(schemas: dict[str, Schema], used: Iterable[str]) -> Iterator[str]:
    for name in sorted(used):
        if "enum" in schemas[name]:
            values = schemas[name]["enum"]
            listed = f"Literal[{', '.join(repr(value) for value in values)}]"
            yield f"{name} = {listed if len(values) <= LISTED_VALUES else 'str'}\n"


def _dataclass(name: str, schema: Schema) -> str:
    """A sensitive field is not shown in its repr, which ends up in logs."""
    lines = [
        f"    {field.name}: {_answer_type(field.schema)}"
        f"{' = field(repr=False)' if _is_sensitive(field.schema) else ''}"
        for field in _properties(schema)
    ]
    return "\n".join(
        ("@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:", *lines, "\n")
    )


def _typed_dict(name: str, fields: Iterable[Field]) -> str:
    lines = []
    for field in fields:
        kind = _param_type(field.schema)
        lines.append(f"    {field.name}: {kind if field.required else f'NotRequired[{kind}]'}")
    return "\n".join((f"class {name}(TypedDict):", *lines, "\n"))


def _answer_type(schema: Schema) -> str:
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return "Event" if name == EVENT else name
    if "anyOf" in schema:
        return " | ".join(_answer_type(item) for item in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return f"Literal[{', '.join(repr(value) for value in values)}]"
    if schema.get("type") == "array":
        return f"list[{_answer_type(schema['items'])}]"
    if schema.get("type") == "object":
        return "dict[str, Any]"
    if schema.get("type") == "number":
        return "Decimal"
    return FORMATS.get(schema.get("format", "")) or SCALARS[schema["type"]]


def _param_type(schema: Schema) -> str:
    """As in answers, and what callers have at hand: an int for an amount, a string for a date, a UUID for an id."""
    if "anyOf" in schema:
        return " | ".join(_param_type(item) for item in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list[{_param_type(schema['items'])}]"
    if schema.get("format") == "uuid":
        return "str | UUID"
    kind = _answer_type(schema)
    return {"Decimal": "Decimal | int", "date": "date | str", "datetime": "datetime | str"}.get(
        kind, kind
    )


def _event_data(schemas: dict[str, Schema]) -> dict[str, str]:
    """The schema of `data` of each type of event."""
    return {
        schema["properties"]["type"]["const"]: name_of(schema["properties"]["data"]["$ref"])
        for name, schema in schemas.items()
        if name.endswith("Event") and name != EVENT
    }


def _formatted(file: Path, text: str) -> str:
    """As the project's formatter writes it, imports sorted."""
    for command in (("check", "--select", "I,F401", "--fix", "--quiet"), ("format",)):
        done = subprocess.run(
            (sys.executable, "-m", "ruff", *command, "--stdin-filename", str(file), "-"),
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=_FORMAT_SECONDS,
        )
        text = done.stdout
    return text
