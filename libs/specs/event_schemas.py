"""What an event looks like, on the broker and at a callback URL."""

from __future__ import annotations

from libs.contracts.events import API_VERSION, EventType
from libs.specs.schemas import Schema


def event_schema(event: EventType, data: Schema) -> Schema:
    """The body of events of this type; `data` is the schema of theirs."""
    text = {"type": "string"}
    members: dict[str, Schema] = {
        "id": {**text, "pattern": "^evt_"},
        "type": {"const": event.name},
        "timestamp": {**text, "format": "date-time"},
        "api_version": {"const": API_VERSION},
        "sequence": {
            "type": "integer",
            "minimum": 1,
            "description": "Grows per resource: what comes with a lower one than was seen is older",
        },
        "data": data,
    }
    return {"type": "object", "required": list(members), "properties": members}
