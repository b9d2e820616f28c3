"""JSON Schemas of the table's models, as the documents show them: requests as taken, replies as given.

Each component has a name of its own, which is its title too: generators make classes of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from libs.contracts.named import MARK
from libs.specs.docstrings import docstring, field_docstrings
from libs.specs.wording import BY_NAME

Schema = dict[str, Any]
Mode = Literal["validation", "serialization"]

Direction = Literal["request", "reply"]

REF = "#/components/schemas/{model}"
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
LIST_MEMBERS = ("type", "enum", "x-enum-varnames")
MODES: dict[Direction, Mode] = {
    "request": "validation",
    "reply": "serialization",
}


class WireSchema(GenerateJsonSchema):
    """What is on the wire, where that differs from what Pydantic says of the type by itself."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Money and percentages are JSON numbers, never strings."""
        bounds = {name: schema[name] for name in BOUNDS if name in schema}  # type: ignore[literal-required]
        return {"type": "number", "format": "decimal", "examples": [1250.75], **bounds}

    def encode_default(self, dft: Any) -> Any:
        return _plain_number(dft) if isinstance(dft, Decimal) else super().encode_default(dft)

    def ser_schema(self, schema: Any) -> JsonSchemaValue | None:
        """A serializer of ours keeps the type's format: a date-time is one."""
        return None if schema["type"] == "function-plain" else super().ser_schema(schema)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Null as default says 'absent', which an optional field says already; for a required field it is no value."""
        described = super().default_schema(schema)
        if described.get("default", ...) is None:
            del described["default"]
        return described

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Replies may grow new fields; requests may not hold unknown ones."""
        described = super().model_schema(schema)
        if self.mode == "serialization":
            described.pop("additionalProperties", None)
        model = cast("type[BaseModel]", schema["cls"])
        if about := docstring(model):
            described["description"] = about
        else:
            described.pop("description", None)
        own = field_docstrings(model)
        for name, item in described.get("properties", {}).items():
            text = own.get(name) or item.get("description") or BY_NAME.get(name)
            if text:
                item["description"] = text
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """Every field of a read shape is present (interface §2)."""
        return self.mode == "serialization" or super().field_is_required(field, total)


def schemas_of(
    types: Iterable[tuple[Any, Direction]],
) -> tuple[dict[tuple[str, Direction], Schema], dict[str, Schema]]:
    """The schema of each type by (`key_of(type)`, direction), and the components that they refer to."""
    unique = {(key_of(item), direction): item for item, direction in types}
    schemas, definitions = TypeAdapter.json_schemas(
        [(key, MODES[key[1]], TypeAdapter(item)) for key, item in unique.items()],
        ref_template=REF,
        schema_generator=WireSchema,
    )
    lists: dict[str, Schema] = {}
    named = {key: _as_shown(schemas[key, MODES[key[1]]], lists) for key in unique}
    components: dict[str, Schema] = {}
    for name, schema in definitions.get("$defs", {}).items():
        shown = component_name(name)
        if shown in components:
            raise RuntimeError(f"two schemas are named {shown}")
        components[shown] = {**_as_shown(schema, lists), "title": shown}
    return named, components | lists


def component_name(name: str) -> str:
    """Of Pydantic's name: `Address-Input` is what is sent, `Address-Output` what is read, `Listed_Wire_` a generic."""
    name = name.removesuffix("-Output").replace("-Input", "Input")
    return re.sub(r"^(\w+?)[_\[](\w+?)[_\]]$", r"\1\2", name)


def _as_shown(value: Any, lists: dict[str, Schema]) -> Any:
    """With our names of components, and JSON Schema's names for constraints that come out under Pydantic's, as those
    behind a validator of ours do.

    Args:
        lists: takes the lists of values that are `Named`; the value then refers to them.
    """
    if isinstance(value, list):
        return [_as_shown(item, lists) for item in value]
    if not isinstance(value, dict):
        return value
    if MARK in value:
        about = value[MARK]
        shape = {name: item for name, item in value.items() if name in LIST_MEMBERS}
        lists[about["title"]] = {**about, **shape}
        rest = {n: item for n, item in value.items() if n != MARK and n not in LIST_MEMBERS}
        return {**ref(about["title"]), **rest}
    if isinstance(refers_to := value.get("$ref"), str):
        prefix = REF.format(model="")
        return {**value, **ref(component_name(refers_to.removeprefix(prefix)))}
    if value.get("type") in ("number", "integer"):
        return {
            BOUNDS.get(name, name): _plain_number(item) if name in BOUNDS else item
            for name, item in value.items()
        }
    return {name: _as_shown(item, lists) for name, item in value.items()}


def _plain_number(value: Any) -> int | float:
    """Bounds that are Decimals may come as text."""
    value = Decimal(value)
    return int(value) if value == int(value) else float(value)


def ref(name: str) -> Schema:
    """The reference to a component."""
    return {"$ref": REF.format(model=name)}


def resolved(document: Mapping[str, Any], item: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a `$ref` names; the item itself where there is none. Members beside the `$ref`, such as a description,
    replace those of the same name.
    """
    if "$ref" not in item:
        return item
    found: Any = document
    for part in item["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return {**resolved(document, found), **{k: v for k, v in item.items() if k != "$ref"}}


def key_of(item: Any) -> str:
    return repr(item)


def references(value: Any) -> set[str]:
    """The names of the component schemas that a document's part refers to, directly."""
    prefix = REF.format(model="")
    if isinstance(value, dict):
        ref = value.get("$ref")
        own = (
            {ref.removeprefix(prefix)} if isinstance(ref, str) and ref.startswith(prefix) else set()
        )
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(references(item) for item in value))
    return set()


def used_by(part: Any, definitions: dict[str, Schema]) -> dict[str, Schema]:
    """Those of the definitions that a document's part needs, at any depth, by name."""
    found: set[str] = set()
    open_names = references(part)
    while open_names:
        name = open_names.pop()
        found.add(name)
        open_names |= references(definitions[name]) - found
    return {name: definitions[name] for name in sorted(found)}
