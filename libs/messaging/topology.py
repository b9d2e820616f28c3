"""Exchanges and queues, derived from the table of operations. Declaring them again changes nothing."""

from __future__ import annotations

from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel

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
    await channel.declare_exchange(COMMANDS, ExchangeType.DIRECT, durable=True)
    await channel.declare_exchange(QUERIES, ExchangeType.DIRECT, durable=True)
    await channel.declare_exchange(EVENTS, ExchangeType.TOPIC, durable=True)
    await channel.declare_exchange(DEAD, ExchangeType.DIRECT, durable=True)


async def declare_durable_queue(channel: AbstractChannel, name: str) -> None:
    """A quorum queue whose dead letters reach `<name>.dead`, at least once."""
    dead = await channel.declare_queue(
        dead_queue(name),
        durable=True,
        arguments={"x-queue-type": "quorum", "x-delivery-limit": NO_DELIVERY_LIMIT},
    )
    await dead.bind(DEAD, routing_key=dead_queue(name))
    await channel.declare_queue(
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
        await channel.declare_queue(
            queries_queue(service),
            durable=True,
            arguments={
                "x-queue-type": "classic",
                "x-message-ttl": QUERY_TTL_SECONDS * 1000,
                "x-max-length": QUERY_QUEUE_LENGTH,
                "x-overflow": "reject-publish",
            },
        )
    queues = {True: queries_queue(service), False: commands_queue(service)}
    for operation in operations:
        queue = await channel.get_queue(queues[operation.is_query], ensure=False)
        await queue.bind(QUERIES if operation.is_query else COMMANDS, routing_key=operation.name)


async def declare_events(channel: AbstractChannel, service: str) -> None:
    """The queue of a service that takes every event."""
    await declare_exchanges(channel)
    await declare_durable_queue(channel, events_queue(service))
    queue = await channel.get_queue(events_queue(service), ensure=False)
    await queue.bind(EVENTS, routing_key="#")
