"""What a JSON value has, as rows of a table: from the schemas of an OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from libs.specs.schemas import resolved

Schema = Mapping[str, Any]

DEEPEST = 6
BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an object.

    Args:
        type: in words, such as `string or null`, `array of WireStep`.
        limits: bounds and the default, in words.
        values: the only ones that there are, of an enumeration.
        members: of the object, or of the objects of the array.
    """

    name: str
    type: str
    required: bool
    description: str
    limits: str
    values: Sequence[str]
    members: Sequence[Field]


class Schemas:
    """The schemas of one document."""

    def __init__(self, document: Schema) -> None:
        self._document = document

    def resolved(self, item: Schema) -> Schema:
        """See `libs.specs.schemas.resolved`."""
        return resolved(self._document, item)

    def members(self, schema: Schema, depth: int = 0) -> list[Field]:
        """Of an object, or of the objects of an array; empty for other values."""
        if depth >= DEEPEST:
            return []
        objects = [each for each in self._alternatives(schema) if "properties" in each]
        required = {name for each in objects for name in each.get("required", ())}
        found = {name: value for each in objects for name, value in each["properties"].items()}
        return [
            self.field(name, value, name in required, depth=depth) for name, value in found.items()
        ]

    def field(self, name: str, schema: Schema, required: bool, *, depth: int = 0) -> Field:
        value = self.resolved(schema)
        return Field(
            name=name,
            type=self._type(schema),
            required=required,
            description=str(value.get("description", "")),
            limits=self._limits(schema),
            values=self._values(schema),
            members=self.members(schema, depth + 1),
        )

    def _alternatives(self, schema: Schema) -> list[Schema]:
        """What the value may be; of an array, what its items may be."""
        value = self.resolved(schema)
        nested = [*value.get("anyOf", ()), *value.get("oneOf", ())]
        if nested:
            return [found for each in nested for found in self._alternatives(each)]
        if "items" in value:
            return self._alternatives(value["items"])
        return [value]

    def _type(self, schema: Schema) -> str:
        value = self.resolved(schema)
        nested = [*value.get("anyOf", ()), *value.get("oneOf", ())]
        if nested:
            return " or ".join(dict.fromkeys(map(self._type, nested)))
        if value.get("type") == "array":
            return f"array of {self._type(value['items'])}"
        if "const" in value:
            return f"always {value['const']}"
        if value.get("type") == "object" and "title" in value:
            return f"{value['title']} object"
        kind, form = str(value.get("type", "any JSON")), value.get("format")
        return f"{kind}, {form}" if form else kind

    def _limits(self, schema: Schema) -> str:
        value = self.resolved(schema)
        words = [
            text.format(each[bound])
            for each in (value, *self._alternatives(schema))
            for bound, text in BOUNDS.items()
            if bound in each and not (bound == "minLength" and each[bound] == 1)
        ]
        if value.get("default") is not None:
            words.append(f"{value['default']} unless given")
        return ", ".join(dict.fromkeys(words))

    def _values(self, schema: Schema) -> list[str]:
        return [str(item) for each in self._alternatives(schema) for item in each.get("enum", ())]
