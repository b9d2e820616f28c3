"""Publishing on one channel: its messages, their confirms, and how much waits for the socket."""

from __future__ import annotations

import time
from typing import Final, cast

from aio_pika.abc import AbstractChannel
from aiormq import Channel, spec

from libs.messaging.broker_errors import session_loss_as_error

Properties = spec.Basic.Properties

TRANSIENT: Final = 1
PERSISTENT: Final = 2
UNCONFIRMED = 1024
"""More than a batch of events, and than the commands that a busy gateway has under way."""


async def underlying(channel: AbstractChannel) -> Channel:
    """The aiormq channel of a channel of aio-pika, on which messages are published and consumed.

    aio-pika's own publication waits for the socket before the next on the channel begins, and its deliveries are
    copied attribute by attribute: `tests/benchmarks/README.md` has what each costs.
    """
    return cast(Channel, await channel.get_underlay_channel())


class Publisher:
    """A channel to publish on.

    Args:
        user: of the connection. Every message names it as its sender, and the broker refuses one that names another.
        confirms: the channel was opened with publisher confirms.
    """

    def __init__(self, channel: Channel, user: str, *, confirms: bool) -> None:
        self._channel = channel
        self._user = user
        self._confirms = confirms
        self._under_way = 0
        self._confirmed = 0
        """Messages that RabbitMQ had confirmed, refused or returned when `measure_unconfirmed` was called last."""
        self._unconfirmed_since: float | None = None
        """When `measure_unconfirmed` first found messages that wait for a confirm, with none confirmed since."""

    def measure_unconfirmed(self) -> float:
        """For how many seconds RabbitMQ has owed confirms and given none; 0 while it owes none. Measured from
        call to call; messages whose senders have given up count, too.
        """
        owed = len(self._channel.confirmations) if self._confirms else 0
        confirmed = self._channel.delivery_tag - owed
        now = time.monotonic()
        if owed == 0:
            self._unconfirmed_since = None
        elif self._unconfirmed_since is None or confirmed != self._confirmed:
            self._unconfirmed_since = now
        self._confirmed = confirmed
        return now - self._unconfirmed_since if self._unconfirmed_since is not None else 0.0

    def begin_to_measure(self) -> None:
        """Measure from now on: until now RabbitMQ read nothing that it could confirm."""
        self._unconfirmed_since = None

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        properties: Properties,
        *,
        wait_for_socket: bool = True,
    ) -> None:
        """Publish. With confirms, return when the broker has confirmed; a message that no queue takes is returned.

        Args:
            wait_for_socket: without confirms, return only when the socket has room again. Otherwise the number of
                messages under way is for the sender to bound.

        Raises:
            ConnectionError: the session ended; with confirms, the message may have arrived.
            DeliveryError: refused; PublishError: returned.
            ChannelInvalidStateError: never written.
        """
        properties.user_id = self._user
        # With confirms, many messages are written together for 50 µs of processor each rather than 82. A broker that
        # has stopped reading is noticed by the number of messages that it has not confirmed.
        wait = self._under_way >= UNCONFIRMED if self._confirms else wait_for_socket
        self._under_way += 1
        try:
            with session_loss_as_error():
                await self._channel.basic_publish(
                    body,
                    exchange=exchange,
                    routing_key=routing_key,
                    properties=properties,
                    mandatory=self._confirms,
                    wait=wait,
                )
        finally:
            self._under_way -= 1
