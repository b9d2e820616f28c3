"""The subscribers' endpoint: it verifies each delivery and keeps which events came, how often."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.receivers import Received, receiver, replies

OK, REFUSED = replies(200), replies(401)


@dataclass
class Endpoint:
    url: str = ""
    secret: str = field(default="", repr=False)
    """Known soon after the first delivery may have come: until then none is judged."""
    times: Counter[str] = field(default_factory=Counter)
    """How often each event came, by its id."""
    bodies: dict[str, int] = field(default_factory=dict)
    """A digest of each event's body, which must be the same each time."""
    wrong: list[str] = field(default_factory=list)

    async def answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        event_id = request.headers["webhook-id"]
        if self.secret:
            try:
                Webhook(self.secret).verify(request.body, dict(request.headers))
            except WebhookVerificationError as error:
                self.wrong.append(f"{event_id}: {error}")
                await REFUSED(request, writer)
                return
        if json.loads(request.body)["id"] != event_id:
            self.wrong.append(f"{event_id}: the body has another id")
        if self.bodies.setdefault(event_id, hash(request.body)) != hash(request.body):
            self.wrong.append(f"{event_id}: came with another body")
        self.times[event_id] += 1
        await OK(request, writer)


@asynccontextmanager
async def endpoint() -> AsyncIterator[Endpoint]:
    """One that listens until the block ends."""
    listening = Endpoint()
    async with receiver(listening.answer) as served:
        served.requests = _Forgotten()
        listening.url = served.url("/hook")
        yield listening


class _Forgotten(list[Received]):
    """Of requests without number: what matters of each is kept by the endpoint."""

    def append(self, item: Received, /) -> None:
        pass
