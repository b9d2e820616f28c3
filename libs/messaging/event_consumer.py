"""Consuming events: taken in batches, acked together once the batch is recorded."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import structlog

from libs.contracts.events import Event
from libs.messaging.consumption import HOLD_SECONDS, Consumption
from libs.messaging.deadlines import within
from libs.messaging.delivery import Delivery, settle
from libs.messaging.event_message import NotAnEvent, decode_event
from libs.messaging.poison import SUSPECT_RETURNS, Suspects, returns_of
from libs.messaging.refusing import Refuser
from libs.messaging.session import Session
from libs.messaging.topology import declare_events, events_queue

PREFETCH = 500
BATCH = 256
GATHER_SECONDS = 0.005
"""A batch that is not full waits at least this long for further events."""
APART_SECONDS = 0.04
"""A batch that is not full begins at least this long after the one before, which saves a tenth of the dispatcher's CPU
under load.
"""
Record = Callable[[Sequence[Event]], Awaitable[Collection[int]]]
"""Records a batch; returns once that is committed, however long the database is away.

Returns the places, in the batch, of events that can never be recorded.
"""


class EventConsumer:
    """A part of the broker that hands every event to `record`, in their order, one batch at a time.

    | event | what is done |
    |---|---|
    | not understood, never to be recorded, or of a sender that does not emit its kind | moved to the dead queue |
    | taken and not yet in a batch when the session is lost | dropped here: the broker delivers it again |
    | recorded and not acked when the session is lost | delivered again, recorded again with no further effect |
    | waiting while a batch takes longer than `HOLD_SECONDS` to be recorded | requeued; the consumer pauses |
    | redelivered too often | taken alone (`libs.messaging.poison`) |
    """

    def __init__(self, service: str, record: Record) -> None:
        self._record = record
        self._queue = events_queue(service)
        self._consumption = Consumption(
            self._queue,
            partial(declare_events, service=service),
            PREFETCH,
            self._on_message,
            has_dead_queue=True,
            works=lambda: self._recording_since is not None,
            waits=lambda: self._recording_since is None and bool(self._arrived or self._settling),
            pause_or_resume=self._pause_or_resume,
        )
        self._arrived: deque[Delivery] = deque()
        self._recording_since: float | None = None
        self._settling = False
        self._suspects = Suspects()
        self._refuser = Refuser(self._queue)
        self._any = asyncio.Event()
        self._full = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopped = False
        self._log = structlog.get_logger("events")

    async def attach(self, session: Session) -> None:
        self._arrived.clear()
        await self._refuser.attach(session)
        await self._consumption.attach(session)

    def detach(self) -> None:
        self._consumption.detach()
        self._refuser.detach()
        self._arrived.clear()

    async def stop(self, seconds: float) -> None:
        """Take no more events; wait up to `seconds` for the current batch to be recorded and acked."""
        self._stopped = True
        self._arrived.clear()
        await self._consumption.stop()
        try:
            await within(seconds, self._idle.wait(), name="batch-of-events")
        except TimeoutError:
            self._log.warning("events_left_to_the_broker")

    async def run(self) -> None:
        """Take and record batches, for ever."""
        loop = asyncio.get_running_loop()
        begun = -APART_SECONDS
        while True:
            await self._any.wait()
            await self._gather(until=max(loop.time() + GATHER_SECONDS, begun + APART_SECONDS))
            begun = loop.time()
            batch = [self._arrived.popleft() for _ in range(min(BATCH, len(self._arrived)))]
            if not self._arrived:
                self._any.clear()
            if len(self._arrived) < BATCH:
                self._full.clear()
            if batch:
                self._idle.clear()
                try:
                    await self._take(batch)
                finally:
                    self._idle.set()

    async def _pause_or_resume(self) -> None:
        """Pause while a batch cannot be recorded; resume when it is."""
        since = self._recording_since
        if self._consumption.is_paused:
            if since is None:
                await self._consumption.resume()
        elif since is not None and asyncio.get_running_loop().time() - since > HOLD_SECONDS:
            await self._consumption.pause()
            while self._arrived:
                await settle(self._arrived.popleft().requeue(), self._log)

    async def _on_message(self, message: Delivery) -> None:
        if not self._stopped:
            self._arrived.append(message)
            self._any.set()
            if len(self._arrived) >= BATCH:
                self._full.set()

    async def _gather(self, *, until: float) -> None:
        """Wait for a full batch, or until this time of the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                await self._full.wait()
        except TimeoutError:
            pass

    async def _take(self, batch: Sequence[Delivery]) -> None:
        suspects = [message for message in batch if returns_of(message) >= SUSPECT_RETURNS]
        if not suspects:
            await self._take_together(batch, last_of_all=True)
            return
        together = [message for message in batch if returns_of(message) < SUSPECT_RETURNS]
        if together:
            await self._take_together(together, last_of_all=False)
        for message in random.sample(suspects, len(suspects)):
            if self._suspects.is_poison(message):
                self._log.error("poison_message_refused", event_id=message.properties.message_id)
                because = f"It came back {returns_of(message)} times: it may end each process that takes it."
                await self._refuse(message, "poison", because)
            else:
                self._suspects.taken(message)
                await self._take_together([message], last_of_all=False)

    async def _take_together(self, batch: Sequence[Delivery], *, last_of_all: bool) -> None:
        """Record a batch and ack it.

        Args:
            last_of_all: everything that was delivered before the last message of the batch is settled or in the batch:
                one ack is enough for all of it.
        """
        messages, events = [], []
        for message in batch:
            try:
                events.append(decode_event(message.properties, message.body))
                messages.append(message)
            except NotAnEvent as error:
                self._log.error("not_an_event", cause=str(error), **message.origin)
                await self._refuse(message, error.reason, f"It is refused: {error}.")
        places = await self._recorded(events) if events else ()
        self._settling = True
        try:
            for place in places:
                because = "It can never be recorded: its id is none of ours, it is too old, or recording it fails."
                await self._refuse(messages[place], "not_recordable", because)
            kept = [message for place, message in enumerate(messages) if place not in places]
            if last_of_all:
                kept = kept[-1:]
            for message in kept:
                await settle(message.ack(multiple=last_of_all), self._log, events=len(messages))
        finally:
            self._settling = False
            self._consumption.progressed()

    async def _recorded(self, events: Sequence[Event]) -> Collection[int]:
        self._recording_since = asyncio.get_running_loop().time()
        try:
            return await self._record(events)
        finally:
            self._recording_since = None

    async def _refuse(self, message: Delivery, reason: str, because: str) -> None:
        await self._refuser.refuse(message, reason, because, self._log)
