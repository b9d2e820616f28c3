"""Every event that a stack published, from its first on, in the order of publishing.

A durable queue that the broker keeps between tests, so that a duplicate that comes late is seen by the next test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractQueue

QUEUE = "test.every_event"
ONCE = {
    "customer.created",
    "person.created",
    "external_account.created",
    "account.opened",
    "transaction.created",
    "ach.created",
    "ach.settled",
    "ach.returned",
    "wire.created",
    "wire.submitted",
    "wire.completed",
    "wire.rejected",
    "wire.returned",
    "wire.canceled",
}
"""Facts that can be true only once of a resource."""

Event = dict[str, Any]


@dataclass
class RecordedEvents:
    amqp_url: str = field(repr=False)
    events: list[Event] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _checked: int = 0
    _once: set[tuple[str, str]] = field(default_factory=set)
    """Facts that can be true only once, as type and resource, of the events that were checked."""
    _latest: dict[tuple[str, str], int] = field(default_factory=dict)
    """Their latest sequence numbers by resource."""
    _opened: tuple[AbstractConnection, AbstractQueue] | None = None
    """The connection of `fetch`, which belongs to the event loop of one test."""

    async def begin(self) -> None:
        """Before anything is published; the exchange need not exist yet."""
        connection = await aio_pika.connect(self.amqp_url)
        async with connection, await connection.channel() as channel:
            exchange = await channel.declare_exchange("bankside.events", "topic", durable=True)
            queue = await channel.declare_queue(QUEUE, durable=True)
            await queue.bind(exchange, "#")

    async def fetch(self) -> list[Event]:
        """All events so far. Publishing is at least once: a second copy of an event is not a second event.

        Its connection stays open for the next call, unless the broker ended it: `close` has to follow.
        """
        queue = await self._queue()
        while message := await queue.get(no_ack=True, fail=False):
            event = json.loads(message.body)
            assert message.routing_key == event["type"]
            if event["id"] not in self._ids:
                self._ids.add(event["id"])
                self.events.append(event)
        return self.events

    async def _queue(self) -> AbstractQueue:
        if self._opened is None or self._opened[0].is_closed:
            connection = await aio_pika.connect(self.amqp_url)
            channel = await connection.channel()
            self._opened = connection, await channel.get_queue(QUEUE)
        return self._opened[1]

    async def close(self) -> None:
        """End the connection of `fetch`. A test ends it before its event loop does."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[0].close()

    async def of(self, customer_id: str) -> list[Event]:
        """Those of a business customer, its persons and accounts."""
        return [event for event in await self.fetch() if business_of(event) == customer_id]

    def check(self) -> None:
        """No resource came into being twice, and its sequence numbers grow. Events since the last check are compared
        with all before them.
        """
        for event in self.events[self._checked :]:
            fact = event["type"], resource_of(event)
            assert fact not in self._once, f"{fact} was told twice"
            if event["type"] in ONCE:
                self._once.add(fact)
            resource = event["type"].partition(".")[0], resource_of(event)
            assert event["sequence"] > self._latest.get(resource, 0), f"{fact} out of order"
            self._latest[resource] = event["sequence"]
            self._checked += 1


def business_of(event: Event) -> str:
    data = event["data"]
    return str(data.get("business_customer_id") or data["customer_id"])


def resource_of(event: Event) -> str:
    data = event["data"]
    match data["object"]:
        case "person":  # a person's id is unique per partner only
            return f"{data['business_customer_id']}/{data['customer_id']}"
        case "wire":
            return str(data["transaction_id"])
        case "ach":
            return str(data["reference_id"])
        case "deposit_locations":
            return str(data["account_id"])
        case kind:
            return str(data.get(f"{kind}_id") or data["id"])
