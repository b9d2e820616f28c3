"""Consuming a queue: its deliveries, to be settled once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from aiormq import Channel
from aiormq.abc import DeliveredMessage

from libs.messaging.broker_errors import session_loss_as_error
from libs.messaging.publishing import Properties


class Delivery:
    """One message, to be acked, rejected or given back unless its consumer said `no_ack`. The first of these counts:
    the broker would end a channel on which a message is settled twice.
    """

    __slots__ = ("_channel", "_settled", "_tag", "body", "properties")

    def __init__(self, message: DeliveredMessage) -> None:
        self.body: bytes = message.body
        self.properties: Properties = message.header.properties
        self._channel = message.channel
        if not message.delivery_tag:
            raise ValueError("a delivery has a tag; acking 0 would ack everything")
        self._tag = message.delivery_tag
        self._settled = False

    async def ack(self, *, multiple: bool = False, wait: bool = True) -> None:
        """Done: the broker forgets it.

        Like the others, it waits for no longer than its session lives.

        Args:
            multiple: and everything before it on its channel.
            wait: until the bytes are with the socket. What is not waited for is still written in its order.

        Raises:
            ChannelInvalidStateError, ConnectionError: it may be delivered again.
        """
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_ack(self._tag, multiple=multiple, wait=wait)

    async def reject(self) -> None:
        """It goes to the dead queue. Raises as `ack` does."""
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_reject(self._tag, requeue=False)

    async def give_back(self) -> None:
        """It goes back to its queue, for any consumer of it. Raises as `ack` does."""
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_nack(self._tag, requeue=True, wait=False)


OnDelivery = Callable[[Delivery], Coroutine[Any, Any, None]]


async def consume(
    channel: Channel, queue: str, on_delivery: OnDelivery, *, no_ack: bool = False
) -> str:
    """Hand over what the queue delivers, each in a task of its own that starts in the order of delivery.

    Returns the consumer's tag. Losing the channel cancels the tasks.
    """

    async def hand_over(message: DeliveredMessage) -> None:
        await on_delivery(Delivery(message))

    consuming = await channel.basic_consume(queue, hand_over, no_ack=no_ack)
    if consuming.consumer_tag is None:
        raise ConnectionError("the broker gave its consumer no tag")
    return consuming.consumer_tag
