"""Claiming deliveries out of a million that are due, beside a thousand.

Measured is what the dispatcher's engine does to claim, transaction and all: its statements, called as it calls them,
for all subscriptions that had something due, and every 250 ms in a sweep for what else has. Not measured is what
happens in between: each delivery that was claimed is recorded as an attempt that failed and is due again, so that the
number due stays. As many subscribe as in `deliveries`, so that also of a thousand each has more due than it may have in
flight: what differs is how much more. A few of them have most of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg

from libs.persistence.engine import Database, open_database
from services.webhook_dispatcher.engine.allocation import allocate, in_turn, most_due
from services.webhook_dispatcher.engine.due_subscriptions import POLL_SECONDS
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.repository import claims, finishing
from services.webhook_dispatcher.repository.claims import Claimed
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.signing_secrets import new_secret
from tests.benchmarks.bench import Bench
from tests.benchmarks.dispatching import DISPATCHER
from tests.benchmarks.figures import Figure, ratio
from tests.benchmarks.processor_time import ProcessorTime
from tests.benchmarks.rounds import alternate
from tests.benchmarks.stored_rows import fill_deliveries, fill_events
from tests.benchmarks.subscribers import subscribe
from tests.support.keys import storage_of

GOAL, FLOOR = 0.8, 0.65
MANY = 1_000_000
FEW = 1_000
SUBSCRIPTIONS = 20
EVENTS = 20_000
"""Of which there are deliveries: each has many, as where every customer subscribes."""
DUE_FOR = timedelta(hours=2)
AT_ONCE = 96
"""Claimed at once: about as many as a busy dispatcher finds finished when it claims again."""


async def run(bench: Bench) -> list[Figure]:
    async with _backlog(bench, MANY) as many, _backlog(bench, FEW) as few:
        ours, beside = await alternate(bench.plan, "/s", many.rate, few.rate)
    note = f"µs of processor per claimed and recorded: {many.told}; with {FEW:,}: {few.told}"
    return [ratio("backlog", ours, beside, goal=GOAL, floor=FLOOR, note=note)]


@dataclass
class _Backlog:
    database: Database
    processor_time: ProcessorTime
    claimed: int = 0
    _active: Mapping[UUID, datetime] = field(default_factory=dict)
    _sweep_at: float = 0.0
    _served_until: UUID = claims.FIRST

    async def rate(self, seconds: int) -> float:
        """Deliveries claimed in each second of claiming."""
        self.processor_time.begin()
        until = time.perf_counter() + seconds
        before, claiming = self.claimed, 0.0
        while (began := time.perf_counter()) < until:
            claim = uuid4()
            claimed = await self._claim(claim)
            claiming += time.perf_counter() - began
            assert len(claimed) == AT_ONCE, "enough is due"
            self.claimed += len(claimed)
            await self._record(claimed, claim)
        self.processor_time.end()
        return (self.claimed - before) / claiming

    @property
    def told(self) -> str:
        return self.processor_time.per(self.claimed)

    async def _claim(self, claim: UUID) -> list[Claimed]:
        now = datetime.now(UTC)
        async with claims.claiming(self.database) as connection:
            due_from = await self._looked_at(connection)
            found = await claims.due_subscriptions(
                connection, due_from, now, most_due=most_due(len(due_from), AT_ONCE)
            )
            counts = allocate(in_turn(found, self._served_until), {}, slots=AT_ONCE, used=0)
            claimed = await claims.take(
                connection,
                counts,
                due_from,
                claim,
                now=now,
                lease_seconds=DeliverySettings().lease_seconds,
            )
        until = {delivery.subscription_id: delivery.due_at for delivery in claimed}
        self._active = {
            subscription.id: until.get(subscription.id, subscription.due_since)
            for subscription in found
        }
        self._served_until = next(reversed(counts))
        return claimed

    async def _looked_at(self, connection: asyncpg.Connection) -> Mapping[UUID, datetime]:
        now = time.perf_counter()
        if now < self._sweep_at:
            return self._active
        self._sweep_at = now + POLL_SECONDS
        return dict.fromkeys(await claims.with_work(connection, after=claims.FIRST), claims.EVER)

    async def _record(self, claimed: Sequence[Claimed], claim: UUID) -> None:
        now = datetime.now(UTC)
        endings = [
            finishing.Ending(
                delivery_id=delivery.id,
                claim=claim,
                concluded=None,
                due_at=now,
                attempted_at=now,
                duration_ms=1,
                response_status=500,
                error=None,
                response_body="",
            )
            for delivery in claimed
        ]
        async with self.database.driver() as connection:
            recorded = await finishing.finish(connection, endings)
        assert len(recorded) == len(claimed), "nobody else claims"


@contextlib.asynccontextmanager
async def _backlog(bench: Bench, count: int) -> AsyncIterator[_Backlog]:
    environment = await bench.servers.environment()
    owner = environment.database_urls[f"{DISPATCHER}_owner"]
    keyring = storage_of(environment.secrets, DISPATCHER)
    database = open_database(environment.database_urls[DISPATCHER], "bench")
    try:
        today = datetime.now(UTC).date()
        await Partitions(database).ensure("attempt", [today, today + timedelta(days=1)])
        endpoints = [("https://example.com/", new_secret())] * SUBSCRIPTIONS
        subscribers = await subscribe(database, keyring, endpoints)
        await fill_events(
            *(database, owner),
            tenant="partner",
            customers=SUBSCRIPTIONS,
            count=EVENTS,
            over=DUE_FOR,
        )
        await fill_deliveries(owner, subscribers, count=count, events=EVENTS, over=DUE_FOR)
        yield _Backlog(database, ProcessorTime(bench.servers.pids()))
    finally:
        await database.close()
