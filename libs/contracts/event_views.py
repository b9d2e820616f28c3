"""Events as they are listed and read: which ones are meant, and what they look like to callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticKnownError
from typing_extensions import TypeAliasType

from libs.contracts import fields as f
from libs.contracts.events import EVENT_TYPES
from libs.contracts.model import Command, Model

EVERYTHING = "*"


def _types_by_filter() -> Mapping[str, frozenset[str]]:
    meant: dict[str, set[str]] = {EVERYTHING: set(EVENT_TYPES)}
    for name, event_type in EVENT_TYPES.items():
        meant.setdefault(event_type.kind, set()).add(name)
        meant[name] = {name}
    return {text: frozenset(names) for text, names in meant.items()}


TYPES_BY_FILTER = _types_by_filter()
"""What each filter means: a type itself, a kind all types of that kind, `*` every type."""


def _variable_name(value: str) -> str:
    """What code made of the document calls it: `WIRE_COMPLETED`; `*` has no name of its own."""
    return "EVERYTHING" if value == EVERYTHING else value.replace(".", "_").upper()


def _known(value: str) -> str:
    if value not in TYPES_BY_FILTER:
        *most, last = (f"'{text}'" for text in sorted(TYPES_BY_FILTER))
        expected = f"{', '.join(most)} or {last}"
        raise PydanticKnownError("literal_error", {"expected": expected})
    return value


EventFilter = TypeAliasType(
    "EventFilter",
    Annotated[
        str,
        AfterValidator(_known),
        WithJsonSchema(
            {
                "type": "string",
                "enum": sorted(TYPES_BY_FILTER),
                "description": "A type, a kind (`transaction` is every `transaction.*`), or `*`",
                "x-enum-varnames": [_variable_name(text) for text in sorted(TYPES_BY_FILTER)],
            }
        ),
    ],
)


class ListEvents(Command):
    """The oldest first; `after` is the id of the last event seen."""

    after: f.FilterId | None = None
    event_type: EventFilter | None = None
    limit: f.Limit = 50


class GetEvent(Command):
    event_id: str


class DeliveredEvent(Model):
    """An event, exactly as it is delivered. `sequence` grows per resource."""

    id: str
    type: str
    timestamp: f.UtcDateTime
    api_version: str
    sequence: int
    data: dict[str, Any]
