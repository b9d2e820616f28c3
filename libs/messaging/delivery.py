"""Consuming a queue: its deliveries, to be settled once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aio_pika.abc import AbstractChannel
from aiormq.abc import DeliveredMessage
from structlog.typing import FilteringBoundLogger

from libs.messaging.broker_errors import BROKER_ERRORS, session_loss_as_error
from libs.messaging.publishing import Properties, underlying


class Delivery:
    """One message, to be acked, rejected or requeued unless its consumer has `no_ack`. Only the first of these is sent:
    the broker would end a channel on which a message is settled twice.
    """

    __slots__ = ("_channel", "_settled", "_tag", "body", "is_redelivered", "properties")

    def __init__(self, message: DeliveredMessage) -> None:
        self.body: bytes = message.body
        self.properties: Properties = message.header.properties
        self.is_redelivered = bool(message.redelivered)
        """Whether it was delivered before, perhaps to another process, and not settled as far as the broker knows."""
        self._channel = message.channel
        if not message.delivery_tag:
            raise ValueError("a delivery has a tag; acking 0 would ack everything")
        self._tag = message.delivery_tag
        self._settled = False

    @property
    def origin(self) -> dict[str, object]:
        """What a log line says of a message that cannot be read."""
        return {
            "bytes": len(self.body),
            "sender": self.properties.user_id,
            "message_id": self.properties.message_id,
        }

    @property
    def is_settled(self) -> bool:
        return self._settled

    async def ack(self, *, multiple: bool = False, wait: bool = True) -> None:
        """Ack the message: the broker deletes it.

        As with `reject` and `requeue`, the wait ends with the session at the latest.

        Args:
            multiple: ack every message before it on its channel, too.
            wait: return only when the socket has room again. The ack is written in its order either way.

        Raises:
            ChannelInvalidStateError, ConnectionError: it may be delivered again.
        """
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_ack(self._tag, multiple=multiple, wait=wait)

    async def reject(self) -> None:
        """Have the broker move the message to the dead queue. Raises as `ack` does."""
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_reject(self._tag, requeue=False)

    async def requeue(self) -> None:
        """Return the message to its queue, for any consumer of it. Raises as `ack` does."""
        if self._settled:
            return
        self._settled = True
        with session_loss_as_error():
            await self._channel.basic_nack(self._tag, requeue=True, wait=False)


async def settle(settling: Awaitable[None], log: FilteringBoundLogger, **what: object) -> None:
    """Await an ack, a refusal or a requeue. One that does not reach the broker is logged, together with `what`: the
    message is delivered again.
    """
    try:
        await settling
    except BROKER_ERRORS as error:
        log.warning("ack_lost", **what, error=type(error).__name__)


OnDelivery = Callable[[Delivery], Coroutine[Any, Any, None]]


async def consume(
    channel: AbstractChannel, queue: str, on_delivery: OnDelivery, *, no_ack: bool = False
) -> str:
    """Consume a queue: `on_delivery` runs for each message, in a task of its own, started in the order of delivery.

    Returns the consumer's tag. Losing the channel cancels the tasks.
    """

    async def hand_over(message: DeliveredMessage) -> None:
        await on_delivery(Delivery(message))

    consuming = await (await underlying(channel)).basic_consume(queue, hand_over, no_ack=no_ack)
    if consuming.consumer_tag is None:
        raise ConnectionError("the broker gave its consumer no tag")
    return consuming.consumer_tag
