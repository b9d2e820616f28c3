"""The exchange of events: what went over it, the same once more, and events of a test's own making."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from libs.contracts.customer_views import PersonEventData
from libs.contracts.customers import CustomerStatus
from libs.contracts.events import EVENT_TYPES, Event, new_event
from tests.support.people import new_key
from tests.support.waiting import eventually

EXCHANGE = "bankside.events"


class EventBus:
    def __init__(self, channel: AbstractChannel, queue: AbstractQueue) -> None:
        self._channel = channel
        self._queue = queue
        self._seen: list[AbstractIncomingMessage] = []

    async def message(self, event_id: str) -> AbstractIncomingMessage:
        """What was published as this event since the block began."""

        async def found() -> AbstractIncomingMessage | None:
            while message := await self._queue.get(no_ack=True, fail=False):
                self._seen.append(message)
            return next((m for m in self._seen if m.message_id == event_id), None)

        return await eventually(f"{event_id} on the bus", found)

    async def again(self, messages: Iterable[AbstractIncomingMessage]) -> None:
        """Publish the same messages once more, as an outbox does that was killed before it took note."""
        exchange = await self._channel.get_exchange(EXCHANGE)
        for message in messages:
            copy = aio_pika.Message(
                message.body,
                content_type=message.content_type,
                delivery_mode=message.delivery_mode,
                message_id=message.message_id,
                type=message.type,
                headers=message.headers,
                user_id=message.user_id,
            )
            await exchange.publish(copy, message.routing_key or "", mandatory=False)

    async def publish(self, events: Sequence[Event]) -> None:
        """Publish what a service would; returns when all of it is confirmed."""
        exchange = await self._channel.get_exchange(EXCHANGE)
        await asyncio.gather(
            *(exchange.publish(_message(event), event.type, mandatory=False) for event in events)
        )


@asynccontextmanager
async def event_bus(amqp_url: str) -> AsyncIterator[EventBus]:
    connection = await aio_pika.connect(amqp_url)
    async with connection, connection.channel() as channel:
        exchange = await channel.declare_exchange(EXCHANGE, "topic", durable=True)
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange, "#")
        yield EventBus(channel, queue)


def _message(event: Event) -> aio_pika.Message:
    return aio_pika.Message(
        event.body,
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=event.event_id,
        type=event.type,
        user_id=EVENT_TYPES[event.type].emitter,
        headers={
            "tenant": event.tenant,
            "customer_id": event.customer_id,
            "resource_id": event.resource_id,
            "sequence": event.sequence,
        },
    )


def made_up_events(count: int, tenant: str, customer_id: str) -> list[Event]:
    """News of as many persons, each of whom nobody has heard of before."""
    return [_of_a_person(new_key(), tenant, customer_id) for _ in range(count)]


def _of_a_person(person_id: str, tenant: str, customer_id: str) -> Event:
    return new_event(
        EVENT_TYPES["person.updated"],
        PersonEventData(
            customer_id=person_id,
            first_name="Ada",
            last_name="Lovelace",
            status=CustomerStatus.APPROVED,
            business_customer_id=customer_id,
        ),
        tenant=tenant,
        customer_id=customer_id,
        resource_id=person_id,
        sequence=1,
        at=datetime.now(UTC),
    )
