"""Exchanges and queues, derived from the table of operations. Declaring them again changes nothing."""

from __future__ import annotations

from aiormq.abc import AbstractChannel

from libs.contracts.table import operations_of

COMMANDS = "bankside.commands"
QUERIES = "bankside.queries"
EVENTS = "bankside.events"
DEAD = "bankside.dead"

EVENT_CONSUMERS = ("webhook_dispatcher",)
"""Services that take every event."""

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


def dead_queue(queue: str) -> str:
    return f"{queue}.dead"


async def declare_exchanges(channel: AbstractChannel) -> None:
    await channel.exchange_declare(COMMANDS, exchange_type="direct", durable=True)
    await channel.exchange_declare(QUERIES, exchange_type="direct", durable=True)
    await channel.exchange_declare(EVENTS, exchange_type="topic", durable=True)
    await channel.exchange_declare(DEAD, exchange_type="direct", durable=True)


async def declare_durable_queue(channel: AbstractChannel, name: str) -> None:
    """A quorum queue whose dead letters reach `<name>.dead`, at least once."""
    await channel.queue_declare(
        dead_queue(name),
        durable=True,
        arguments={"x-queue-type": "quorum", "x-delivery-limit": NO_DELIVERY_LIMIT},
    )
    await channel.queue_bind(dead_queue(name), DEAD, routing_key=dead_queue(name))
    await channel.queue_declare(
        name,
        durable=True,
        arguments={
            "x-queue-type": "quorum",
            "x-delivery-limit": NO_DELIVERY_LIMIT,
            "x-dead-letter-exchange": DEAD,
            "x-dead-letter-routing-key": dead_queue(name),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        },
    )


async def declare_service(channel: AbstractChannel, service: str) -> None:
    """The command and query queues of a service, with a binding per operation."""
    await declare_exchanges(channel)
    operations = operations_of(service)
    if any(not operation.is_query for operation in operations):
        await declare_durable_queue(channel, commands_queue(service))
    if any(operation.is_query for operation in operations):
        await channel.queue_declare(
            queries_queue(service),
            durable=True,
            arguments={
                "x-queue-type": "classic",
                "x-message-ttl": QUERY_TTL_SECONDS * 1000,
                "x-max-length": QUERY_QUEUE_LENGTH,
                "x-overflow": "reject-publish",
            },
        )
    for operation in operations:
        queue, exchange = (
            (queries_queue(service), QUERIES)
            if operation.is_query
            else (commands_queue(service), COMMANDS)
        )
        await channel.queue_bind(queue, exchange, routing_key=operation.name)


async def declare_events(channel: AbstractChannel, service: str) -> None:
    """The queue of a service that takes every event."""
    await declare_exchanges(channel)
    await declare_durable_queue(channel, events_queue(service))
    await channel.queue_bind(events_queue(service), EVENTS, routing_key="#")
