"""Poison messages, which end every process that takes them, and how to know them from messages that an outage returned.

A quorum queue counts how often a message came back: because its consumer died, because a session was lost, or because
a consumer that could not record requeued it. Our own outages must not count, and a poison message must not kill for
ever. The rule:

| came back | what a consumer does |
|---|---|
| fewer than `SUSPECT_RETURNS` times | takes it with others |
| as often or more, a suspect | takes it alone: suspects one at a time, in random order |
| `POISON_RETURNS` times | moves it to the dead queue, unless this process took it before and so survived it |

Between two deaths, some of the suspects that were unacked beside a poison message are recorded, so that it is alone in
the end. It is moved after at most `POISON_RETURNS` deaths, which take 25 minutes when each process starts again after
30 s. An outage costs a message a return or two, since consumers that cannot record pause
(`libs.messaging.consumption`) and have no unacked messages, however long it lasts and however many sessions are lost in
it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

from cachetools import LRUCache

from libs.messaging.delivery import Delivery

SUSPECT_RETURNS = 5
POISON_RETURNS = 50
SURVIVED = 10_000
"""The most suspects that are remembered: many more than are unacked at once."""
GATHER_SECONDS = 0.1
"""How long the first suspect waits for others, so that the order can be random."""


def returns_of(message: Delivery) -> int:
    """How often the message came back to its queue. RabbitMQ 4.3 does not count requeueing by a consumer."""
    headers = message.properties.headers
    count = headers.get("x-delivery-count") if headers else None
    return count if isinstance(count, int) else 0


class Suspects:
    """What one consumer knows about the suspects that it took."""

    def __init__(self) -> None:
        self._survived: LRUCache[str, bool] = LRUCache(SURVIVED)
        self._waiting: list[asyncio.Future[None]] = []
        self._busy = False

    def is_poison(self, message: Delivery) -> bool:
        return returns_of(message) >= POISON_RETURNS and name_of(message) not in self._survived

    def taken(self, message: Delivery) -> None:
        """Note that this process takes a suspect: one that comes back to this process did not end it."""
        self._survived[name_of(message)] = True

    @asynccontextmanager
    async def alone(self, message: Delivery) -> AsyncIterator[None]:
        """The body runs while no other suspect is taken."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._next)
        try:
            await turn
            self.taken(message)
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._next()

    def _next(self) -> None:
        self._waiting = [turn for turn in self._waiting if not turn.done()]
        self._busy = bool(self._waiting)
        if self._waiting:
            turn = self._waiting.pop(random.randrange(len(self._waiting)))  # noqa: S311 - no secret
            turn.set_result(None)


def name_of(message: Delivery) -> str:
    """The name by which a message is known when it is delivered again."""
    return message.properties.message_id or sha256(message.body).hexdigest()
