"""Events as they are listed and read: which ones are meant, and what they look like to callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError, PydanticKnownError

from libs.contracts import fields as f
from libs.contracts.events import API_VERSION, EVENT_TYPES
from libs.contracts.model import Command, Model
from libs.contracts.named import Named

EVERYTHING = "*"


def _types_by_filter() -> Mapping[str, frozenset[str]]:
    meant: dict[str, set[str]] = {EVERYTHING: set(EVENT_TYPES)}
    for name, event_type in EVENT_TYPES.items():
        meant.setdefault(event_type.kind, set()).add(name)
        meant[name] = {name}
    return {text: frozenset(names) for text, names in meant.items()}


TYPES_BY_FILTER = _types_by_filter()
"""What each filter means: a type itself, a kind all types of that kind, `*` every type."""


def _one_text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    rule = "Input should be one string: a type, a kind, or `*` for all"
    if isinstance(value, list):
        rule = "Input should be one string, not an array: a type, a kind, or `*` for all; make a subscription for each"
    raise PydanticCustomError("string_type", rule, {"expected": _expected()})


def _expected() -> str:
    *most, last = (f"'{text}'" for text in sorted(TYPES_BY_FILTER))
    return f"{', '.join(most)} or {last}"


def _variable_name(value: str) -> str:
    """What code made of the document calls it: `WIRE_COMPLETED`; `*` has no name of its own."""
    return "EVERYTHING" if value == EVERYTHING else value.replace(".", "_").upper()


def _known(value: str) -> str:
    if value not in TYPES_BY_FILTER:
        raise PydanticKnownError("literal_error", {"expected": _expected()})
    return value


EventFilter = Annotated[
    str,
    BeforeValidator(_one_text),
    AfterValidator(_known),
    WithJsonSchema(
        {
            "type": "string",
            "enum": sorted(TYPES_BY_FILTER),
            "x-enum-varnames": [_variable_name(text) for text in sorted(TYPES_BY_FILTER)],
        }
    ),
    Named("EventFilter", "A type, a kind (`transaction` is every `transaction.*`), or `*`."),
]


class ListEvents(Command):
    """List the events that are kept (30 days), oldest first. To miss none, ask again with `after`, the id of the last
    event that was listed, until the list is empty.
    """

    after: f.FilterId | None = None
    """The id of the last event that was listed (`evt_…`): only events after it. The last delivery may have overtaken
    others: after it these are not found. An id that is not known or no longer kept is 404.
    """
    event_type: EventFilter | None = None
    """Only these events, as one string: a type, a kind, or `*`."""
    limit: f.Limit = 50


class GetEvent(Command):
    """Get an event, exactly as it was delivered."""

    event_id: str
    """The event's id, `evt_` and a UUID: the `webhook-id` of its delivery."""


class DeliveredEvent(Model):
    """An event, exactly as it is delivered."""

    id: str
    """The event's id, the same at every attempt and in every subscription."""
    type: str
    """What happened: `<kind>.<what>`."""
    timestamp: f.UtcDateTime
    """When it happened, as the bank tells it where it does, else when it was recorded."""
    api_version: Annotated[str, WithJsonSchema({"type": "string", "examples": [API_VERSION]})]
    """The version of the interface by which `data` is written, as of when the event was recorded."""
    sequence: int
    """Grows per resource: what comes with a lower one than was seen is older."""
    data: dict[str, Any]
    """The resource as it was then; its shape is that of the webhook of the same type."""
