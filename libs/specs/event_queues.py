"""The AsyncAPI 3 document of `/asyncapi.json`: events, as consumers of queues of their own receive them."""

from __future__ import annotations

from typing import Any

from libs.contracts.events import API_VERSION, EVENT_TYPES
from libs.messaging.topology import EVENTS, events_queue
from libs.specs.asyncapi import EVENTS_EXCHANGE, event_message, is_published
from libs.specs.example_events import event_example
from libs.specs.example_resources import CUSTOMER_ID
from libs.specs.schemas import Schema, key_of, schemas_of, used_by

DESCRIPTION = """\
Events for programs that consume RabbitMQ queues in place of webhooks. The operator of Bankside makes a user with one
durable queue, bound to the types of events that it asks for; the user may read this queue and nothing else. Events of
all partners pass through one exchange: queues are for programs of the operator, webhooks for partners and customers.

Delivery is at least once: ack an event when its effect is stored, and drop an `id` that was seen before. Events of one
resource are ordered by `sequence`. A queue holds 200,000 events or 256 MiB; beyond it the oldest is dropped, and
`sequence` has a gap. The guide is at `/docs/guides/queues`.
"""
QUEUE = "queue"
AMQP = "0.3.0"
"""The version of AsyncAPI's AMQP bindings."""


def event_queues_document() -> dict[str, Any]:
    """The whole document, as plain JSON values."""
    published = [event for event in EVENT_TYPES.values() if is_published(event)]
    schemas, definitions = schemas_of([(event.data, "reply") for event in published])
    messages: dict[str, Schema] = {}
    for event in published:
        example = event_example(event)
        messages[event.name] = {
            **event_message(event, schemas[key_of(event.data), "reply"]),
            "title": event.name,
            "summary": event.description,
            "contentType": "application/json",
            "bindings": {"amqp": {"messageType": event.name, "bindingVersion": AMQP}},
            "x-amqp-properties": {
                "message_id": "The event's id.",
                "type": event.name,
                "user_id": f"{event.emitter}: the broker has checked it.",
                "delivery_mode": 2,
            },
            "examples": [
                {
                    "headers": {
                        "tenant": "acme",
                        "customer_id": CUSTOMER_ID,
                        "sequence": example["sequence"],
                    },
                    "payload": example,
                }
            ],
        }
    references = {name: {"$ref": f"#/components/messages/{name}"} for name in messages}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Bankside, events from queues",
            "version": API_VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "broker": {
                "host": "{host}",
                "pathname": "/{vhost}",
                "protocol": "amqps",
                "protocolVersion": "0.9.1",
                "description": "The operator names the host, the virtual host and the user.",
                "variables": {
                    "host": {"default": "rabbitmq.example.com:5671"},
                    "vhost": {"default": "bankside"},
                },
                "security": [{"type": "userPassword"}],
            }
        },
        "channels": {
            QUEUE: {
                "address": events_queue("{user}"),
                "title": "The consumer's queue",
                "description": f"Durable, made by the operator, bound to the exchange {EVENTS}.",
                "parameters": {
                    "user": {"description": "The consumer's user.", "examples": ["books"]}
                },
                "messages": references,
                "bindings": {
                    "amqp": {
                        "is": "queue",
                        "queue": {
                            "name": events_queue("{user}"),
                            "durable": True,
                            "exclusive": False,
                            "autoDelete": False,
                        },
                        "bindingVersion": AMQP,
                    }
                },
            },
            EVENTS: {
                "address": "{type}",
                "title": "The exchange of events",
                "description": "The routing key is the event's type.",
                "parameters": {"type": {"enum": sorted(messages)}},
                "messages": references,
                "bindings": {
                    "amqp": {
                        "is": "routingKey",
                        "exchange": EVENTS_EXCHANGE,
                        "bindingVersion": AMQP,
                    }
                },
            },
        },
        "operations": {
            "receiveEvents": {
                "action": "receive",
                "title": "Receive events",
                "description": "Ack each event when its effect is stored.",
                "channel": {"$ref": f"#/channels/{QUEUE}"},
                "messages": [{"$ref": f"#/channels/{QUEUE}/messages/{name}"} for name in messages],
                "bindings": {"amqp": {"ack": True, "bindingVersion": AMQP}},
            }
        },
        "components": {"messages": messages, "schemas": used_by(messages, definitions)},
    }
