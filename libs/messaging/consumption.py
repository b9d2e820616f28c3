"""The consumer of one queue, across sessions: it can be paused, and a stall is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

import structlog
from aio_pika.abc import AbstractChannel

from libs.messaging.broker_errors import BROKER_ERRORS, session_loss_as_error
from libs.messaging.deadlines import within
from libs.messaging.delivery import Delivery, OnDelivery, consume
from libs.messaging.metrics import (
    CONSUMER_PAUSED,
    CONSUMER_RESTARTS,
    DEAD_LETTERS,
    MESSAGES_REFUSED,
    QUEUE_MESSAGES,
    QUEUE_OLDEST_SECONDS,
)
from libs.messaging.probing import Probe, is_probe
from libs.messaging.publishing import underlying
from libs.messaging.queue_age import QueueAge
from libs.messaging.queue_depths import counts_of
from libs.messaging.refusing import WRONG_SENDER
from libs.messaging.session import Session
from libs.messaging.topology import dead_queue

STOP_SECONDS = 3.0
HOLD_SECONDS = 5.0
"""How long a recording may take before its consumer asks whether it should pause."""
STALL_SECONDS = 30.0
SILENT_SECONDS = 8.0
"""For how long the leader of the queue may not answer before the service is not ready: longer than an election."""

Declare = Callable[[AbstractChannel], Awaitable[None]]
"""Declares the queue, and what it is bound to."""


class Consumption:
    """The consumer of one queue; there is none between sessions or while it is paused.

    Args:
        has_dead_queue: its letters are counted for the metric.
        works: whether the owner is working on a message, so that a time without progress is legitimate.
        waits: whether a message that was taken waits for something other than the owner's work.
        pause_or_resume: called once a second on a live session, to `pause` or `resume`.
    """

    def __init__(
        self,
        queue: str,
        declare: Declare,
        prefetch: int,
        on_delivery: OnDelivery,
        *,
        has_dead_queue: bool,
        works: Callable[[], bool],
        waits: Callable[[], bool],
        pause_or_resume: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.queue = queue
        self._declare = declare
        self._prefetch = prefetch
        self._on_delivery = on_delivery
        self._has_dead_queue = has_dead_queue
        self._works = works
        self._waits = waits
        self._pause_or_resume = pause_or_resume
        self._channel: AbstractChannel | None = None
        self._tag: str | None = None
        self._probe: Probe | None = None
        self._paused = False
        self._stopped = False
        self._progressed = False
        self._still_since: float | None = None
        self._silent_since: float | None = None
        """Since when the leader of the queue does not answer, by the loop's clock."""
        self._dead_is_silent = False
        self._age = QueueAge()
        CONSUMER_PAUSED.labels(queue).set(0)
        CONSUMER_RESTARTS.labels(queue)
        MESSAGES_REFUSED.labels(queue, WRONG_SENDER)
        self._log = structlog.get_logger("consumption")

    @property
    def is_consuming(self) -> bool:
        return self._tag is not None

    @property
    def is_paused(self) -> bool:
        return self._paused

    @property
    def caught_up_to(self) -> float | None:
        """Every message that was sent before this time (Unix seconds) has been delivered; None: not known, as while it
        is paused or there is no session.
        """
        return self._age.caught_up_to

    async def attach(self, session: Session) -> None:
        """Declare the queue on a new session, which has it consume with `begin`."""
        channel = await session.channel()
        await self._declare(channel)
        await channel.set_qos(prefetch_count=self._prefetch)
        self._channel, self._tag = channel, None
        self._still_since = self._silent_since = None
        self._probe = await Probe.of(session, channel, self.queue) if session.probes else None
        session.watch(self)

    async def begin(self) -> None:
        if self._channel is None or self._tag is not None or self._paused or self._stopped:
            return
        await self._consume(self._channel)

    async def _consume(self, channel: AbstractChannel) -> None:
        self._tag = await consume(channel, self.queue, self._deliver)

    async def _deliver(self, message: Delivery) -> None:
        if self._probe is not None:
            self._probe.served()
        if is_probe(message):
            with contextlib.suppress(*BROKER_ERRORS):  # it comes again, in another session
                await message.ack(wait=False)
            return
        self._progressed = True
        self._age.delivered(message.properties.message_id)
        await self._on_delivery(message)

    def progressed(self) -> None:
        """Note that the owner made progress."""
        self._progressed = True

    def detach(self) -> None:
        """The session ended."""
        self._channel = None
        self._age.requeued()

    async def pause(self) -> None:
        """Cancel the consumer, on this session and those that follow, until `resume`."""
        self._paused = True
        self._age.requeued()
        CONSUMER_PAUSED.labels(self.queue).set(1)
        self._log.warning("consumer_paused", queue=self.queue)
        await self._cancel()

    async def resume(self) -> None:
        self._paused = False
        CONSUMER_PAUSED.labels(self.queue).set(0)
        self._log.info("consumer_resumed", queue=self.queue)
        if self._channel is not None and not self._stopped:
            await self._consume(self._channel)

    async def stop(self) -> None:
        """Cancel the consumer for good; messages that were taken can still be acked."""
        self._stopped = True
        # Where the session is lost, the consumer is, too.
        with contextlib.suppress(*BROKER_ERRORS), session_loss_as_error():
            await within(STOP_SECONDS, self._cancel(), name=f"cancel:{self.queue}")

    async def _cancel(self) -> None:
        tag, self._tag = self._tag, None
        if self._channel is not None and tag is not None:
            await (await underlying(self._channel)).basic_cancel(tag)

    def check(self) -> None:
        if self._stopped:
            return
        if self._paused:
            raise ConnectionError(f"the consumer of {self.queue} is paused")
        if self._still_since is not None:
            raise ConnectionError(f"the consumer of {self.queue} stands still")
        if self._silent_since is not None and _now() - self._silent_since >= SILENT_SECONDS:
            raise ConnectionError(f"the queue {self.queue} does not answer")

    async def pause_or_resume(self) -> None:
        if self._pause_or_resume is not None and not self._stopped:
            await self._pause_or_resume()

    async def probe(self) -> bool:
        if self._probe is None:
            return False
        if self._paused or self._stopped or self._works() or self._waits():
            self._probe.served()
            return False
        return await self._probe.send_when_idle()

    async def measure(self, channel: AbstractChannel) -> None:
        """Ask RabbitMQ what waits, for the metrics and for `is_stalled`."""
        counts = await counts_of(channel, self.queue)
        is_consumed = self.is_consuming
        if counts.are_known(is_consumed=is_consumed):
            self._silent_since = None
            oldest = self._age.seconds(counts.ready, time.time(), is_consumed=is_consumed)
            QUEUE_MESSAGES.labels(self.queue).set(counts.ready)
            QUEUE_OLDEST_SECONDS.labels(self.queue).set(oldest)
            if self._has_dead_queue:
                await self._measure_dead(channel)
        elif self._silent_since is None:
            self._silent_since = _now()
            self._log.warning("queue_not_answering", queue=self.queue)
        self._note_progress(counts.ready)

    async def _measure_dead(self, channel: AbstractChannel) -> None:
        queue = dead_queue(self.queue)
        counts = await counts_of(channel, queue)
        are_known = counts.are_known(is_consumed=False)
        if are_known:
            DEAD_LETTERS.labels(queue).set(counts.ready)
        elif not self._dead_is_silent:
            self._log.warning("queue_not_answering", queue=queue)
        self._dead_is_silent = not are_known

    def _note_progress(self, ready: int) -> None:
        progressed, self._progressed = self._progressed, False
        expected = self._waits() or (ready > 0 and not self._works())
        if progressed or self._paused or self._stopped or not expected:
            self._still_since = None
        elif self._still_since is None:
            self._still_since = _now()

    def is_stalled(self) -> bool:
        """No progress for `STALL_SECONDS`, although a message that was taken waits, or the queue has messages and the
        consumer has none to work on, as `measure` has seen it.
        """
        return self._still_since is not None and _now() - self._still_since >= STALL_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
