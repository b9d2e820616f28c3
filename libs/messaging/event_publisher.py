"""Publishing events with confirms, many under way at once, in order per publisher."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aio_pika.exceptions import PublishError

from libs import tracing
from libs.contracts.events import Event
from libs.gathering import gather_or_cancel
from libs.messaging.event_message import encode_event
from libs.messaging.publishing import Publisher
from libs.messaging.session import Session
from libs.messaging.topology import EVENTS

PUBLISH_SECONDS = 15.0


class EventPublisher:
    """A part of the broker that publishes events to the topic exchange, routing key = event type."""

    def __init__(self) -> None:
        self._publisher: Publisher | None = None

    async def attach(self, session: Session) -> None:
        self._publisher = await session.publisher(confirms=True)

    def detach(self) -> None:
        self._publisher = None

    async def publish(self, events: Sequence[Event]) -> list[Event]:
        """Publish events, and wait until the broker has confirmed all. Returns the events that no queue takes.

        Raises:
            ConnectionError, AMQPError, TimeoutError: some are not confirmed; publishing them again is safe.
        """
        publisher = self._publisher
        if publisher is None:
            raise ConnectionError("no session with the broker")
        async with asyncio.timeout(PUBLISH_SECONDS):
            # Frames are written in the order in which the tasks begin.
            taken = await gather_or_cancel(
                (_publish(publisher, event) for event in events), name="publish"
            )
        return [event for event, is_taken in zip(events, taken, strict=True) if not is_taken]


async def _publish(publisher: Publisher, event: Event) -> bool:
    """Whether a queue has taken it."""
    with _sending(event) as span:
        trace = tracing.current() if span is not None else None
        properties = encode_event(event, trace)
        try:
            await publisher.publish(EVENTS, event.type, event.body, properties)
        except PublishError as error:
            if span is not None:
                span.fail(type(error).__name__)
            return False
    return True


def _sending(event: Event) -> tracing.Spanning:
    if (parent := tracing.parent(event.trace)) is None:
        return tracing.NOTHING
    return tracing.span(
        f"send {event.type}",
        "producer",
        parent,
        {
            **tracing.messaging("send", f"{EVENTS}:{event.type}", event.type, event.event_id),
            "bankside.request_id": event.request_id,
            "bankside.resource_id": event.resource_id,
        },
    )
