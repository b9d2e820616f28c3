"""Everything that can be sent over the broker, and by whom: read off the tables, not off the generated permissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from libs.contracts.events import EVENT_TYPES
from libs.contracts.table import OPERATIONS, SERVICES, operations_of
from libs.messaging.topology import (
    COMMANDS,
    DEAD,
    EVENT_CONSUMERS,
    EVENTS,
    PROBES,
    QUERIES,
    REPLIES,
    commands_queue,
    dead_queue,
    events_queue,
    queries_queue,
)

GATEWAY = "gateway"
EVERYBODY = (GATEWAY, *SERVICES)
INTERNAL_COMMANDS = ("onboarding.apply_decision",)
"""Commands that a service starts for itself: no table has them."""
COMMAND_NAMES = tuple(row.name for row in OPERATIONS if not row.is_query)


class Address(NamedTuple):
    exchange: str
    routing_key: str


def queues_of(service: str) -> list[str]:
    """Those that it keeps over its sessions."""
    durable = []
    if any(not row.is_query for row in operations_of(service)):
        durable.append(commands_queue(service))
    if service in EVENT_CONSUMERS:
        durable.append(events_queue(service))
    queries = [queries_queue(service)] if operations_of(service) else []
    return [*durable, *map(dead_queue, durable), *queries]


QUEUES = tuple(queue for service in EVERYBODY for queue in queues_of(service))


def replies_of(service: str) -> str:
    return f"{service}.replies.0"


def addresses() -> Iterator[Address]:
    for name in (*COMMAND_NAMES, *INTERNAL_COMMANDS, "onboarding.unknown", "#"):
        yield Address(COMMANDS, name)
    for service in (*EVERYBODY, "unknown", "#"):
        yield Address(QUERIES, service)
        yield Address(REPLIES, replies_of(service))
    for name in (*EVENT_TYPES, "unknown.happened"):
        yield Address(EVENTS, name)
    for queue in QUEUES:
        yield Address("", queue)
        yield Address(DEAD, queue)
        yield Address(PROBES, queue)


def may_send(service: str, address: Address) -> bool:
    """By the tables; its own dead queues a service may write to, and probe its others."""
    exchange, key = address
    if exchange == COMMANDS:
        return any(row.name == key and service in row.senders for row in OPERATIONS)
    if exchange == QUERIES:
        return any(
            row.is_query and row.service == key and service in row.senders for row in OPERATIONS
        )
    if exchange == EVENTS:
        known = EVENT_TYPES.get(key)
        return known is not None and known.emitter == service and service not in EVENT_CONSUMERS
    if exchange == REPLIES:
        asker = key.partition(".")[0]
        return any(asker in row.senders for row in operations_of(service))
    is_dead = key.endswith(dead_queue(""))
    return key in queues_of(service) and exchange == (DEAD if is_dead else PROBES)
