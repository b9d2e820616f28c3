"""The queues of a service, as it declares them itself."""

from __future__ import annotations

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from libs.contracts.table import operations_of
from libs.messaging.topology import declare_commands, declare_queries
from tests.support.waiting import eventually


async def declare_service(channel: AbstractChannel, service: str) -> None:
    """Its command queue and its query queue, as far as it has commands and queries."""
    operations = operations_of(service)
    if any(not operation.is_query for operation in operations):
        await declare_commands(channel, service)
    if any(operation.is_query for operation in operations):
        await declare_queries(channel, service)


async def next_in(queue: AbstractQueue) -> AbstractIncomingMessage:
    """The next message, once there is one: it takes the broker a moment to have one back that a reader left."""

    async def taken() -> AbstractIncomingMessage | None:
        return await queue.get(fail=False)

    return await eventually("there is a message", taken)
