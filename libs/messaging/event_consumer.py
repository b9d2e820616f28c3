"""Consuming events: taken in batches, acked together once the batch is recorded."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import structlog

from libs.contracts.events import Event
from libs.messaging.broker import BROKER_ERRORS, Session
from libs.messaging.consumption import Consumption
from libs.messaging.delivery import Delivery
from libs.messaging.topology import declare_events, events_queue

PREFETCH = 500
BATCH = 256
GATHER_SECONDS = 0.005
"""How long a batch that is not full waits for more, at least."""
APART_SECONDS = 0.04
"""Such a batch begins so long after the one before: a tenth less of processor in the dispatcher under load."""
TEXT_LENGTH = 255
GREATEST_SEQUENCE = 2**63 - 1

_TYPE = re.compile(r"[a-z_]{1,64}\.[a-z_]{1,64}")

Record = Callable[[Sequence[Event]], Awaitable[Collection[int]]]
"""Records a batch; returns once that is committed, however long the database is away.

Returns the places, in the batch, of events that can never be recorded.
"""


class NotAnEvent(ValueError):
    """The message cannot be understood; says why, without quoting it."""


def decode_event(message: Delivery) -> Event:
    """What `EventPublisher` published. Of a type that this release does not know, too: the emitter may be newer.

    Raises:
        NotAnEvent
    """
    properties = message.properties
    headers, event_type = properties.headers or {}, properties.message_type
    if event_type is None or not _TYPE.fullmatch(event_type):
        raise NotAnEvent("its type is not one of an event")
    sequence = headers.get("sequence")
    if type(sequence) is not int or not 0 <= sequence <= GREATEST_SEQUENCE:
        raise NotAnEvent("its sequence is no number")
    if not message.body:
        raise NotAnEvent("it is empty")
    return Event(
        event_id=_text("message_id", properties.message_id),
        type=event_type,
        tenant=_text("tenant", headers.get("tenant")),
        customer_id=_text("customer_id", headers.get("customer_id"), may_be_empty=True),
        resource_id=_text("resource_id", headers.get("resource_id")),
        sequence=sequence,
        body=message.body,
    )


def _text(name: str, value: object, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LENGTH or "\0" in value:
        raise NotAnEvent(f"its {name} is not a text")
    if not value and not may_be_empty:
        raise NotAnEvent(f"its {name} is empty")
    return value


class EventConsumer:
    """A part of the broker that hands every event to `record`, in their order, one batch at a time.

    What cannot be understood is rejected to the dead queue. A lost session forgets what was not begun: it is
    delivered again, as is what was recorded and not acked.
    """

    def __init__(self, service: str, record: Record) -> None:
        self._service = service
        self._record = record
        self._consumption = Consumption()
        self._arrived: deque[Delivery] = deque()
        self._any = asyncio.Event()
        self._full = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopped = False
        self._log = structlog.get_logger("events")

    async def attach(self, session: Session) -> None:
        self._arrived.clear()
        await self._consumption.start(
            session,
            partial(declare_events, service=self._service),
            events_queue(self._service),
            PREFETCH,
            self._on_message,
        )

    def detach(self) -> None:
        self._consumption.forget()
        self._arrived.clear()

    async def stop(self, seconds: float) -> None:
        """Take no more events; let the batch at hand be recorded and acked, for so long."""
        self._stopped = True
        self._arrived.clear()
        await self._consumption.stop()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._log.warning("events_left_to_the_broker")

    async def run(self) -> None:
        """Work for ever."""
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

    async def _on_message(self, message: Delivery) -> None:
        if not self._stopped:
            self._arrived.append(message)
            self._any.set()
            if len(self._arrived) >= BATCH:
                self._full.set()

    async def _gather(self, *, until: float) -> None:
        """Until there is a full batch, or this moment of the loop's clock."""
        try:
            async with asyncio.timeout_at(until):
                await self._full.wait()
        except TimeoutError:
            pass

    async def _take(self, batch: Sequence[Delivery]) -> None:
        messages, events, refused = [], [], []
        for message in batch:
            try:
                events.append(decode_event(message))
                messages.append(message)
            except NotAnEvent as error:
                self._log.error("not_an_event", cause=str(error), bytes=len(message.body))
                refused.append(message)
        places = await self._record(events) if events else ()
        refused += [messages[place] for place in places]
        kept = [message for place, message in enumerate(messages) if place not in places]
        try:
            for message in refused:
                await message.reject()
            if kept:
                # Everything before it was acked or rejected: batches are taken one after another.
                await kept[-1].ack(multiple=True)
        except BROKER_ERRORS as error:
            self._log.warning("ack_lost", events=len(kept), error=type(error).__name__)
