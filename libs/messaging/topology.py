"""Exchanges and queues, derived from the table of operations. Declaring a queue again changes nothing.

| exchange | routing key |
|---|---|
| `bankside.commands` | the operation |
| `bankside.queries` | the service that is asked: a batch may hold several operations |
| `bankside.events` | the type |
| `bankside.replies` | the queue of the process that asked |
| `bankside.dead` | the dead queue |
| `bankside.probes` | the queue whose consumers are probed (`libs.messaging.probing`) |

All are topic exchanges, since RabbitMQ checks routing keys by permission on these alone. They come with the users and
permissions (`deploy/rabbitmq`), and so do the queues of services that take every event; a service declares and binds
its own queues and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from aio_pika.abc import AbstractChannel

from libs.contracts.table import SERVICES, operations_of

COMMANDS = "bankside.commands"
QUERIES = "bankside.queries"
EVENTS = "bankside.events"
REPLIES = "bankside.replies"
DEAD = "bankside.dead"
PROBES = "bankside.probes"
EXCHANGES = (COMMANDS, QUERIES, EVENTS, REPLIES, DEAD, PROBES)

QueueType = Literal["classic", "quorum"]

EVENT_CONSUMERS = ("webhook_dispatcher",)
"""Services that take every event. Their queues come with the exchanges: while one is missing, an event that the queue
of another consumer takes counts as delivered.
"""
EVERY_EVENT = "#"

QUERY_TTL_SECONDS = 25
"""The gateway's longest deadline: the caller of an older query has been answered."""
QUERY_QUEUE_LENGTH = 10_000
NO_DELIVERY_LIMIT = 1_000_000_000
"""RabbitMQ 4 has a limit of its own (20) unless another is declared. It would count returns that are no fault of the
message: lost sessions, and each look at a dead letter. Consumers end poison messages themselves
(`libs.messaging.poison`).
"""


def commands_queue(service: str) -> str:
    return f"{service}.commands"


def queries_queue(service: str) -> str:
    return f"{service}.queries"


def events_queue(service: str) -> str:
    return f"{service}.events"


def replies_queue(service: str, unique: str) -> str:
    """The queue for the replies to one process in one session with the broker."""
    return f"{service}.replies.{unique}"


def replies_queues(service: str) -> str:
    """A regular expression for all of them, in Python and at the broker."""
    return re.escape(replies_queue(service, "")) + "[0-9A-Za-z-]+"


def dead_queue(queue: str) -> str:
    return f"{queue}.dead"


def durable_queues(service: str) -> tuple[str, ...]:
    """The queues of a service that have dead letters."""
    commands = any(not operation.is_query for operation in operations_of(service))
    return (
        *((commands_queue(service),) if commands else ()),
        *((events_queue(service),) if service in EVENT_CONSUMERS else ()),
    )


def consumed_queues(service: str) -> tuple[str, ...]:
    """The queues that each of its processes consumes, besides that of its replies."""
    queries = any(operation.is_query for operation in operations_of(service))
    return (*durable_queues(service), *((queries_queue(service),) if queries else ()))


def queues_of(service: str) -> tuple[str, ...]:
    """All queues that its processes share."""
    return (*consumed_queues(service), *map(dead_queue, durable_queues(service)))


def dead_queues() -> tuple[str, ...]:
    """The dead queues of every service."""
    return tuple(dead_queue(queue) for service in SERVICES for queue in durable_queues(service))


def durable_queue_arguments(name: str) -> Mapping[str, Mapping[str, str | int]]:
    """The arguments of a durable queue and of its dead queue, by queue."""
    return {
        dead_queue(name): {"x-queue-type": "quorum", "x-delivery-limit": NO_DELIVERY_LIMIT},
        name: {
            "x-queue-type": "quorum",
            "x-delivery-limit": NO_DELIVERY_LIMIT,
            "x-dead-letter-exchange": DEAD,
            "x-dead-letter-routing-key": dead_queue(name),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        },
    }


async def declare_durable_queue(channel: AbstractChannel, name: str) -> None:
    """A quorum queue whose dead letters reach `<name>.dead`, at least once."""
    arguments = durable_queue_arguments(name)
    dead = await channel.declare_queue(
        dead_queue(name), durable=True, arguments={**arguments[dead_queue(name)]}
    )
    await dead.bind(DEAD, routing_key=dead_queue(name))
    await channel.declare_queue(name, durable=True, arguments={**arguments[name]})


async def declare_commands(channel: AbstractChannel, service: str) -> None:
    """The command queue of a service, with a binding per operation."""
    await declare_durable_queue(channel, commands_queue(service))
    queue = await channel.get_queue(commands_queue(service), ensure=False)
    for operation in operations_of(service):
        if not operation.is_query:
            await queue.bind(COMMANDS, routing_key=operation.name)


async def declare_queries(
    channel: AbstractChannel, service: str, queue_type: QueueType = "classic"
) -> None:
    """The query queue of a service. A classic queue is on one node of a cluster, and away while that node is. An
    existing queue of another type has to be deleted first.
    """
    queue = await channel.declare_queue(
        queries_queue(service),
        durable=True,
        arguments={
            "x-queue-type": queue_type,
            "x-message-ttl": QUERY_TTL_SECONDS * 1000,
            "x-max-length": QUERY_QUEUE_LENGTH,
            "x-overflow": "reject-publish",
        },
    )
    await queue.bind(QUERIES, routing_key=service)


async def declare_events(channel: AbstractChannel, service: str) -> None:
    """The queue of a service that takes every event."""
    await declare_durable_queue(channel, events_queue(service))
    queue = await channel.get_queue(events_queue(service), ensure=False)
    await queue.bind(EVENTS, routing_key=EVERY_EVENT)
