"""The queues of a service, as it declares them itself."""

from __future__ import annotations

from aio_pika.abc import AbstractChannel

from libs.contracts.table import operations_of
from libs.messaging.topology import declare_commands, declare_queries


async def declare_service(channel: AbstractChannel, service: str) -> None:
    """Its command queue and its query queue, as far as it has commands and queries."""
    operations = operations_of(service)
    if any(not operation.is_query for operation in operations):
        await declare_commands(channel, service)
    if any(operation.is_query for operation in operations):
        await declare_queries(channel, service)
