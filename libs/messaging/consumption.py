"""Being a consumer of a queue, on the session at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from libs.messaging.broker import BROKER_ERRORS, Session

STOP_SECONDS = 3.0

Declare = Callable[[AbstractChannel], Awaitable[None]]
"""Declares the queue, and what it is bound to."""


class Consumption:
    """At most one consumer, and none between sessions."""

    def __init__(self) -> None:
        self._queue: AbstractQueue | None = None
        self._tag = ""

    async def start(
        self,
        session: Session,
        declare: Declare,
        queue: str,
        prefetch: int,
        on_message: Callable[[AbstractIncomingMessage], Coroutine[Any, Any, None]],
    ) -> None:
        channel = await session.channel(confirms=False)
        await declare(channel)
        await channel.set_qos(prefetch_count=prefetch)
        self._queue = await channel.get_queue(queue, ensure=False)
        self._tag = await self._queue.consume(on_message)

    def forget(self) -> None:
        self._queue = None

    async def stop(self) -> None:
        """Take nothing more from the queue; what was taken can still be acked."""
        queue, self._queue = self._queue, None
        if queue is not None:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await queue.cancel(self._tag)
            except BROKER_ERRORS:
                pass  # the session is lost, and with it the consumer
