"""What travels over the broker as an AsyncAPI 3 document, read off the table: commands, queries, replies, events."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from libs.contracts.events import API_VERSION, EVENT_TYPES, EventType
from libs.contracts.operation import Operation
from libs.contracts.table import OPERATIONS, SERVICES, operations_of
from libs.messaging.envelope import Envelope, Reply, WireError
from libs.messaging.replier import REPLY_BATCH
from libs.messaging.service_client import QUERY_BATCH
from libs.messaging.topology import (
    COMMANDS,
    EVENTS,
    QUERIES,
    commands_queue,
    dead_queue,
    queries_queue,
)
from libs.messaging.topology import REPLIES as REPLY_EXCHANGE
from libs.specs.event_schemas import event_schema
from libs.specs.schemas import REF, Schema, key_of, schemas_of, used_by

DESCRIPTION = """\
Commands are durable, one to a message; queries, and the replies to both, travel in batches. Sensitive fields (tax
numbers, dates of birth, external account numbers, secrets) are sealed in both directions: what stands in their place is
a string that only the services can open. Every message names its sender in the property `user_id`, which the broker
checks.
"""
REPLIES = "replies"
DELIVERIES = "deliveries"
DISPATCHER = "webhook_dispatcher"
EVENTS_EXCHANGE: Schema = {"name": EVENTS, "type": "topic", "durable": True, "autoDelete": False}


@cache
def asyncapi_document() -> dict[str, Any]:
    """The whole document, as plain JSON values. Built once; treat it as read-only."""
    schemas, definitions = schemas_of(
        [(row.command, "request") for row in OPERATIONS]
        + [(row.reply, "reply") for row in OPERATIONS]
        + [(event.data, "reply") for event in EVENT_TYPES.values()]
    )
    definitions = {name: _sealed(schema) for name, schema in definitions.items()}
    messages = {REPLIES: _replies()}
    operations: dict[str, Schema] = {}
    for row in OPERATIONS:
        messages[row.name] = _request(row, schemas[key_of(row.command), "request"])
        messages[_reply_name(row)] = _reply(row, schemas[key_of(row.reply), "reply"])
        operations[row.name] = _operation(row)
    for event in EVENT_TYPES.values():
        messages[event.name] = event_message(event, schemas[key_of(event.data), "reply"])
        channel = EVENTS if is_published(event) else DELIVERIES
        operations[event.name] = {
            "action": "send",
            "title": f"{event.emitter} reports {event.name}",
            "channel": {"$ref": f"#/channels/{channel}"},
            "messages": [{"$ref": f"#/channels/{channel}/messages/{event.name}"}],
        }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Bankside, on the broker",
            "version": API_VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": _channels(),
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": used_by(messages, definitions | _envelopes()),
        },
    }


def _envelopes() -> dict[str, Schema]:
    """Envelope and Reply, with what they refer to."""
    _, described = msgspec.json.schema_components(
        [Envelope, WireError], ref_template=REF.format(model="{name}")
    )
    text = {"type": "string"}
    members: dict[str, Schema] = {
        "id": {**text, "description": "The envelope's"},
        "to": {**text, "description": "The envelope's message_id"},
        "result": {"type": "object", "description": "On success"},
        "error": {"$ref": REF.format(model=WireError.__name__)},
        "request_id": {**text, "description": "Of the request that an error answered first"},
        "replayed": {"type": "boolean", "default": False},
        "message": {**text, "description": "In place of the operation's message, on success"},
    }
    # By hand, since msgspec cannot describe the default of an encoded result.
    if set(members) != set(Reply.__struct_fields__):
        raise RuntimeError("the document does not know all fields of a reply")
    reply = {"title": "Reply", "type": "object", "required": ["id", "to"], "properties": members}
    return {**described, Reply.__name__: reply}


def _sealed(schema: Any) -> Any:
    """The schema with what is sensitive as it travels."""
    if isinstance(schema, list):
        return [_sealed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-sensitive"):
        return {"type": "string", "description": "Sealed", "x-sensitive": True}
    return {name: _sealed(item) for name, item in schema.items()}


def _channels() -> dict[str, Schema]:
    channels: dict[str, Schema] = {}
    for service in SERVICES:
        rows = operations_of(service)
        commands = [row.name for row in rows if not row.is_query]
        queries = [row.name for row in rows if row.is_query]
        if commands:
            name = commands_queue(service)
            channels[name] = _channel(
                name,
                commands,
                f"Durable; each message one command, published to {COMMANDS} by the operation's name.",
            )
            dead = dead_queue(name)
            channels[dead] = _channel(
                dead,
                commands,
                "Commands that could not be read, whose sender may not send them, or that were delivered too often.",
            )
        if queries:
            name = queries_queue(service)
            channels[name] = _channel(
                name,
                queries,
                f"Messages are batches of queries, published to {QUERIES} by the service's name.",
            )
    published = [event.name for event in EVENT_TYPES.values() if is_published(event)]
    channels[EVENTS] = {
        "address": "{type}",
        "description": "Facts. The routing key is the event's type.",
        "parameters": {"type": {"enum": sorted(published)}},
        "messages": {name: _message_ref(name) for name in published},
        "bindings": {"amqp": {"is": "routingKey", "exchange": EVENTS_EXCHANGE}},
    }
    channels[DELIVERIES] = {
        "address": None,
        "description": "Not on the broker: posted to the callback URLs of subscriptions, every event byte for byte.",
        "messages": {name: _message_ref(name) for name in EVENT_TYPES},
    }
    channels[REPLIES] = {
        "address": None,
        "description": "An exclusive queue of the process that asked, named in reply_to and bound by its name to"
        f" {REPLY_EXCHANGE}. An answer counts only when it comes from the service that was asked.",
        "messages": {REPLIES: _message_ref(REPLIES)}
        | {_reply_name(row): _message_ref(_reply_name(row)) for row in OPERATIONS},
    }
    return channels


def _channel(queue: str, rows: list[str], description: str) -> Schema:
    binding: Schema = {"is": "queue", "queue": {"name": queue, "durable": True}}
    return {
        "address": queue,
        "description": description,
        "messages": {name: _message_ref(name) for name in rows},
        "bindings": {"amqp": binding},
    }


def is_published(event: EventType) -> bool:
    """Those of the dispatcher go straight into what it delivers."""
    return event.emitter != DISPATCHER


def _operation(row: Operation) -> Schema:
    channel = queries_queue(row.service) if row.is_query else commands_queue(row.service)
    return {
        "action": "receive",
        "title": row.summary,
        "description": f"Taken from {' and '.join(row.senders)} only.",
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{row.name}"}],
        "reply": {
            "address": {"location": "$message.header#/reply_to"},
            "channel": {"$ref": f"#/channels/{REPLIES}"},
            "messages": [{"$ref": f"#/channels/{REPLIES}/messages/{_reply_name(row)}"}],
        },
    }


def _request(row: Operation, command: Schema) -> Schema:
    envelope: Schema = {
        "allOf": [{"$ref": REF.format(model="Envelope")}],
        "properties": {"operation": {"const": row.name}, "body": command},
    }
    return {
        "name": row.name,
        "summary": row.summary,
        "payload": _batch(envelope, QUERY_BATCH) if row.is_query else envelope,
    }


def _reply(row: Operation, data: Schema) -> Schema:
    result = {"type": "object", "required": ["data"], "properties": {"data": data}}
    reply = {
        "allOf": [{"$ref": REF.format(model="Reply")}],
        "properties": {"result": result},
    }
    return {"name": _reply_name(row), "payload": _batch(reply, REPLY_BATCH)}


def _replies() -> Schema:
    return {
        "name": REPLIES,
        "summary": "Replies to commands and queries, matched by their ids.",
        "payload": _batch({"$ref": REF.format(model="Reply")}, REPLY_BATCH),
    }


def _batch(item: Schema, limit: int) -> Schema:
    return {"type": "array", "minItems": 1, "maxItems": limit, "items": item}


def event_message(event: EventType, data: Schema) -> Schema:
    """Headers and payload of events of this type; `data` is the schema of theirs."""
    text = {"type": "string"}
    headers: dict[str, Schema] = dict.fromkeys(("tenant", "customer_id", "resource_id"), text)
    headers["request_id"] = {**text, "description": "Of the request that caused it, if known"}
    for name in ("traceparent", "tracestate"):
        headers[name] = {**text, "description": "Of W3C Trace Context, where a trace is recorded"}
    return {
        "name": event.name,
        "summary": f"Recorded by {event.emitter}; delivered to subscribers byte for byte.",
        "headers": {
            "type": "object",
            "properties": {**headers, "sequence": {"type": "integer"}},
        },
        "payload": event_schema(event, data),
    }


def _reply_name(row: Operation) -> str:
    return f"{row.name}.reply"


def _message_ref(name: str) -> Schema:
    return {"$ref": f"#/components/messages/{name}"}
