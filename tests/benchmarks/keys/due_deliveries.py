"""Deliveries that were stored and due before they are measured, which several keys measure."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from libs.contracts.events import Event
from services.webhook_dispatcher.repository import claims
from tests.benchmarks.dispatching import Dispatching
from tests.benchmarks.example_event import new_events
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.wrk import LoadFailed

FIRST_RATE = 1000.0
"""Deliveries a second to prepare for while it is not known how many are needed."""
LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.01


@dataclass
class DueDeliveries:
    """Rounds that begin when claims become possible, and end when the last delivery to an endpoint that answers is
    recorded. What the receiver has not checked is no delivery.

    With a `hung_share`, that part of what is due goes to the endpoint that hangs. It hangs anew in every round: no
    circuit breaker is open, and it takes all slots that it may have.
    """

    where: Dispatching
    hung_share: float = 0.0
    delivered: int = 0
    _rate: float = FIRST_RATE
    _processor_time: ProcessorTime = field(init=False)

    def __post_init__(self) -> None:
        parts = parts_of(self.where.stack, self.where.bench.servers)
        self._processor_time = ProcessorTime({**parts, "receiver": self.where.receiver.pid})

    async def rate(self, seconds: int) -> float:
        """Deliveries a second to the endpoints that answer."""
        count = round(self._rate * seconds)
        try:
            elapsed = await self._round(count)
        finally:
            if self.hung_share:
                await self.where.forget_hung()
        self.delivered += count
        self._rate = count / elapsed
        return self._rate

    @property
    def told(self) -> str:
        return self._processor_time.per(self.delivered)

    async def _round(self, count: int) -> float:
        """The seconds that so many took."""
        await self.where.receiver.begin()
        events = self._events(count)
        # Nothing is claimed until all is stored: we hold what claims are made under.
        async with claims.claiming(self.where.database):
            due_at = datetime.now(UTC)
            await self.where.store(events, due_at)
            self._processor_time.begin()
            began = time.perf_counter()
        await self._until_over(count)
        elapsed = time.perf_counter() - began
        self._processor_time.end()
        return elapsed

    def _events(self, count: int) -> list[Event]:
        answering, hung = self.where.answering, self.where.hung
        hanging = round(count * self.hung_share / (1 - self.hung_share))
        events = new_events(hung.tenant, hung.customer_id, hanging)
        for number, to in enumerate(answering):
            share = len(range(number, count, len(answering)))
            events += new_events(to.tenant, to.customer_id, share)
        random.shuffle(events)
        return events

    async def _until_over(self, count: int) -> None:
        receiver, answering = self.where.receiver, self.where.answering
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                while await receiver.checked() < count or await self.where.any_left(answering):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            came = f"{await receiver.checked()} of {count} deliveries came"
            raise LoadFailed(f"{came} within {LIMIT_SECONDS:g} s") from None
