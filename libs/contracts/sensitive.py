"""Which fields are never stored, queued or logged in clear, and how a payload is walked to seal them.

A field is sensitive when its type carries the `Sensitive` marker. `SensitiveShape.of(model)` finds them at any
depth, once per model; `apply` replaces their values in a payload. Each is sealed for its place: the row or message, and
the path of the field, as in `persons/acme/0192…#/tin`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Protocol, get_args, get_origin

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Sensitive:
    """Marker for `Annotated`: tax numbers, dates of birth, external account numbers, secrets."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "x-sensitive": True}


class Sealer(Protocol):
    """Authenticated encryption of one value. `context`, its place, must be the same at both ends, or opening fails."""

    def seal(self, plaintext: str, context: str) -> str: ...

    def open(self, token: str, context: str) -> str: ...


@dataclass(frozen=True, slots=True)
class SensitiveShape:
    """The sensitive places of a JSON value: the value itself, members of an object, items of an array."""

    whole: bool = False
    members: dict[str, SensitiveShape] = field(default_factory=dict)
    items: SensitiveShape | None = None

    def __bool__(self) -> bool:
        return self.whole or bool(self.members) or self.items is not None

    @staticmethod
    def of(annotation: Any) -> SensitiveShape:
        return _shape(annotation)

    def apply(self, value: Any, change: Callable[[str, str], str], place: str) -> Any:
        """`value` with each sensitive, non-null place changed; the input is left as it is.

        Args:
            change: takes the text and its place.
            place: of `value`.
        """
        if value is None:
            return None
        if self.whole:
            return change(str(value), place)
        if self.members and isinstance(value, dict):
            changed = dict(value)
            for name, shape in self.members.items():
                if name in changed:
                    changed[name] = shape.apply(changed[name], change, f"{place}/{name}")
            return changed
        if self.items is not None and isinstance(value, list | tuple):
            return [
                self.items.apply(item, change, f"{place}/{index}")
                for index, item in enumerate(value)
            ]
        return value


def seal_payload(shape: SensitiveShape, payload: Any, sealer: Sealer, context: str) -> Any:
    return shape.apply(payload, sealer.seal, f"{context}#") if shape else payload


def open_payload(shape: SensitiveShape, payload: Any, sealer: Sealer, context: str) -> Any:
    return shape.apply(payload, sealer.open, f"{context}#") if shape else payload


@lru_cache(maxsize=1024)
def _shape(annotation: Any) -> SensitiveShape:
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        if any(isinstance(item, Sensitive) for item in metadata):
            return SensitiveShape(whole=True)
        return _shape(inner)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _model_shape(annotation)
    for argument in get_args(annotation):
        shape = _shape(argument)
        if shape and get_origin(annotation) in (list, tuple):
            return SensitiveShape(items=shape)
        if shape:
            return shape
    return SensitiveShape()


def _model_shape(model: type[BaseModel]) -> SensitiveShape:
    members = {}
    for name, info in model.model_fields.items():
        marked = any(isinstance(item, Sensitive) for item in info.metadata)
        annotation: Any = info.annotation
        shape = SensitiveShape(whole=True) if marked else _shape(annotation)
        if shape:
            members[name] = shape
    return SensitiveShape(members=members)
