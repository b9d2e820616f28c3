"""Subscriptions with a real endpoint behind each, as a customer or a partner has them.

async with receiver() as endpoint, subscribed(live.partner, endpoint, "wire") as subscriber:
    ...
    (event,) = await subscriber.heard(1)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks import Webhook

from tests.support.api import Answer, Api
from tests.support.receivers import Answer as Reply
from tests.support.receivers import Received, Receiver, replies
from tests.support.waiting import EVENTUALLY_SECONDS, eventually

PARTNER = "/partner/reseller"
CUSTOMER = "/customer"
SUBSCRIPTIONS = "/webhooks/subscriptions"

Event = dict[str, Any]


@dataclass
class Subscriber:
    api: Api
    prefix: str
    subscription_id: str
    endpoint: Receiver
    target: str
    """Of the endpoint: what goes there is this subscription's."""
    secret: str = field(repr=False)

    @property
    def one(self) -> str:
        return f"{self.prefix}{SUBSCRIPTIONS}/{self.subscription_id}"

    @property
    def requests(self) -> list[Received]:
        """What came, in its order."""
        return [request for request in self.endpoint.requests if request.target == self.target]

    @property
    def ids(self) -> list[str]:
        """Of the events that came, in the order of attempts."""
        return [request.headers["webhook-id"] for request in self.requests]

    def verified(self, request: Received, secret: str | None = None) -> Event:
        """The event, if Standard Webhooks' own library says that it is genuine. Raises WebhookVerificationError."""
        event: Event = Webhook(secret or self.secret).verify(request.body, dict(request.headers))
        assert event["id"] == request.headers["webhook-id"]
        return event

    async def heard(self, count: int, seconds: float = EVENTUALLY_SECONDS) -> list[Event]:
        """The events of all requests, verified, once there are exactly so many."""

        async def came() -> bool:
            assert len(self.requests) >= count, Counter(self.ids)
            return True

        await eventually(f"{count} requests at {self.target}", came, seconds)
        assert len(self.requests) == count, Counter(self.ids)
        return [self.verified(request) for request in self.requests]

    async def heard_types(self, *types: str, seconds: float = EVENTUALLY_SECONDS) -> list[Event]:
        """The same, once they are of these types, each as often as named."""
        events = await self.heard(len(types), seconds)
        assert Counter(event["type"] for event in events) == Counter(types)
        return events

    async def deliveries(self, **query: Any) -> list[Any]:
        """The newest first, at most a hundred."""
        asked = "&".join(f"{name}={value}" for name, value in {"limit": 100, **query}.items())
        found: list[Any] = (await self.api.get(f"{self.one}/deliveries?{asked}")).data
        return found

    async def delivery(self, event_id: str) -> Any:
        """The newest one of the event, with its attempts."""
        found = [d for d in await self.deliveries() if d["event_id"] == event_id]
        assert found, f"no delivery of {event_id}"
        return (await self.api.get(f"{self.one}/deliveries/{found[0]['delivery_id']}")).data

    async def is_over(self, count: int, seconds: float = EVENTUALLY_SECONDS) -> list[Any]:
        """All deliveries once there are so many, none of which waits for anything."""

        async def over() -> list[Any]:
            found = await self.deliveries()
            states = Counter(d["status"] for d in found)
            assert len(found) >= count, states
            assert not states["pending"], states
            return found

        found = await eventually(f"{count} deliveries are over", over, seconds)
        assert len(found) == count
        return found

    async def do(self, what: str, body: Any = None) -> Any:
        """`POST …/<subscription>/<what>`; its data."""
        return (await self.api.call("POST", f"{self.one}/{what}", body)).data

    async def change(self, **changes: Any) -> Any:
        return (await self.api.patch(self.one, changes)).data

    async def delete(self) -> Answer:
        return await self.api.call("DELETE", self.one)


@asynccontextmanager
async def subscribed(
    api: Api,
    endpoint: Receiver,
    event_types: str = "*",
    *,
    prefix: str = PARTNER,
    target: str = "/hook",
) -> AsyncIterator[Subscriber]:
    """A subscription for as long as the block lasts, so that nothing is sent when its endpoint is gone."""
    wanted = {"event_types": event_types, "callback_url": endpoint.url(target)}
    made = (await api.post(f"{prefix}{SUBSCRIPTIONS}", wanted)).data
    subscription_id = made["subscription_id"]
    secret = (await api.get(f"{prefix}{SUBSCRIPTIONS}/{subscription_id}/secret")).data["secret"]
    subscriber = Subscriber(api, prefix, subscription_id, endpoint, target, secret)
    try:
        yield subscriber
    finally:
        gone = await subscriber.delete()
        assert gone.status in {200, 404}, gone.body


async def listed_events(api: Api, prefix: str, **query: Any) -> tuple[list[Event], bytes]:
    """A page of `GET …/events`: the events, and the answer as it came."""
    asked = "&".join(f"{name}={value}" for name, value in {"limit": 100, **query}.items())
    answer = await api.get(f"{prefix}/events?{asked}")
    return answer.data, answer.raw


def are_listed_as(bodies: Sequence[bytes], raw: bytes) -> bool:
    """Whether an answer of `GET …/events` lists exactly these bodies, in their order, byte for byte."""
    return b'"data":[' + b",".join(bodies) + b"]" in raw


def by_target(answers: dict[str, Reply], default: Reply | None = None) -> Reply:
    """One endpoint that answers each target its own way; the rest 200."""
    otherwise = default or replies(200)

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        await answers.get(request.target, otherwise)(request, writer)

    return answer


@dataclass
class Gate:
    """An answer that does not come before the gate is opened."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0

    async def answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        self.waiting += 1
        try:
            await self.opened.wait()
        finally:
            self.waiting -= 1
        await replies(200)(request, writer)
