"""Publishing one message, with the ways in which it can fail told as errors."""

from __future__ import annotations

from aio_pika import Message
from aio_pika.abc import AbstractExchange

from libs.messaging.session_loss import session_loss_as_error


async def publish(
    exchange: AbstractExchange, message: Message, routing_key: str, *, mandatory: bool
) -> None:
    """Publish; on a channel with confirms, return when the broker confirmed.

    Raises:
        ConnectionError: the session ended; on a channel with confirms the message may have arrived.
        DeliveryError: refused or returned.
        ChannelInvalidStateError: never written.
    """
    with session_loss_as_error():
        await exchange.publish(message, routing_key, mandatory=mandatory)
