"""Publishing one message, with the ways in which it can fail told as errors."""

from __future__ import annotations

import asyncio

from aio_pika import Message
from aio_pika.abc import AbstractExchange


async def publish(
    exchange: AbstractExchange, message: Message, routing_key: str, *, mandatory: bool
) -> None:
    """Publish; on a channel with confirms, return when the broker confirmed.

    Raises:
        ConnectionError: the session ended; on a channel with confirms the message may have arrived.
        DeliveryError: refused or returned.
        ChannelInvalidStateError: never written.
    """
    try:
        await exchange.publish(message, routing_key, mandatory=mandatory)
    except asyncio.CancelledError:
        # aio-pika cancels pending confirms when a session ends. Nobody cancelled us: that must not pass for our end,
        # which a TaskGroup would take for success.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the session ended before the confirm") from None
