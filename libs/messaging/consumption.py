"""Being a consumer of a queue, on the session at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aio_pika.abc import AbstractChannel

from libs.messaging.broker import BROKER_ERRORS, Session
from libs.messaging.delivery import OnDelivery, consume

STOP_SECONDS = 3.0

Declare = Callable[[AbstractChannel], Awaitable[None]]
"""Declares the queue, and what it is bound to."""


class Consumption:
    """At most one consumer, and none between sessions."""

    def __init__(self) -> None:
        self._channel: AbstractChannel | None = None
        self._tag = ""

    async def start(
        self,
        session: Session,
        declare: Declare,
        queue: str,
        prefetch: int,
        on_delivery: OnDelivery,
    ) -> None:
        channel = await session.channel(confirms=False)
        await declare(channel)
        await channel.set_qos(prefetch_count=prefetch)
        self._channel = channel
        self._tag = await consume(channel, queue, on_delivery)

    def forget(self) -> None:
        self._channel = None

    async def stop(self) -> None:
        """Take nothing more from the queue; what was taken can still be acked."""
        channel, self._channel = self._channel, None
        if channel is not None:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    underlay = await channel.get_underlay_channel()
                    await underlay.basic_cancel(self._tag)
            except BROKER_ERRORS:
                pass  # the session is lost, and with it the consumer
