"""What an event looks like, on the broker and at a callback URL."""

from __future__ import annotations

import re

from libs.contracts.events import API_VERSION, EventType
from libs.specs.schemas import Schema


def event_name(event: EventType) -> str:
    """The name of its schema: `WireCompletedEvent` of `wire.completed`."""
    return "".join(word.capitalize() for word in re.split(r"[._]", event.name)) + "Event"


def event_schema(event: EventType, data: Schema) -> Schema:
    """The body of events of this type; `data` is the schema of theirs."""
    text = {"type": "string"}
    members: dict[str, Schema] = {
        "id": {
            **text,
            "pattern": "^evt_",
            "description": "The event's id, the same at every attempt and in every subscription: one that a receiver"
            " has seen before can be dropped.",
        },
        "type": {"const": event.name, "description": "What happened: `<kind>.<what>`."},
        "timestamp": {
            **text,
            "format": "date-time",
            "description": "When it happened, as the bank tells it where it does, else when it was recorded; in"
            " UTC with microseconds.",
        },
        "api_version": {
            **text,
            "examples": [API_VERSION],
            "description": "The version of the interface by which `data` is written, as of when the event was"
            " recorded.",
        },
        "sequence": {
            "type": "integer",
            "minimum": 1,
            "description": "Grows per resource: what comes with a lower one than was seen is older.",
        },
        "data": {"description": "The resource as it was then.", **data},
    }
    return {
        "title": event_name(event),
        "type": "object",
        "description": event.description,
        "required": list(members),
        "properties": members,
    }
