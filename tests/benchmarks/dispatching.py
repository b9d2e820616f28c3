"""One dispatcher process with 20 subscriptions whose endpoints answer, and one whose endpoint hangs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from deploy.local.services import SERVICES
from libs.contracts.events import Event
from libs.persistence.engine import Database, open_database
from services.webhook_dispatcher.repository import recording, subscriptions
from services.webhook_dispatcher.signing_secrets import new_secret
from tests.benchmarks.bench import Bench
from tests.benchmarks.receiver import HUNG, Receiver, running_receiver
from tests.benchmarks.subscribers import Subscriber, subscribe
from tests.support.keys import storage_of
from tests.support.stack import Stack
from tests.support.waiting import eventually

SUBSCRIPTIONS = 20
RECORDED_AT_ONCE = 1000
DISPATCHER = "webhook_dispatcher"


@dataclass(frozen=True)
class Dispatching:
    """`database` is the dispatcher's."""

    bench: Bench
    stack: Stack
    database: Database
    receiver: Receiver
    answering: Sequence[Subscriber]
    hung: Subscriber

    async def store(self, events: Sequence[Event], due_at: datetime) -> None:
        """Record events as the dispatcher does, with their deliveries."""
        arrivals = [arrival for event in events if (arrival := recording.arrival_of(event))]
        for first in range(0, len(arrivals), RECORDED_AT_ONCE):
            async with self.database.transaction() as connection:
                batch = arrivals[first : first + RECORDED_AT_ONCE]
                await recording.record_batch(connection, batch, due_at)

    async def any_left(self, subscribers: Iterable[Subscriber]) -> bool:
        """Whether a delivery of theirs is not over."""
        statement = text("SELECT EXISTS (SELECT FROM delivery WHERE subscription_id = ANY(:ids))")
        ids = [subscriber.subscription_id for subscriber in subscribers]
        async with self.database.transaction() as connection:
            return bool((await connection.execute(statement, {"ids": ids})).scalar_one())

    async def forget_hung(self) -> None:
        """Drop what waits for the endpoint that hangs, let go what is under way there, forget how it has been doing."""
        await self._drop_unclaimed()
        await self.receiver.let_go()

        async def over() -> bool:
            await self._drop_unclaimed()  # what was let go is due again in 5 s
            return not await self.any_left([self.hung])

        await eventually("nothing is under way where it hangs", over)
        async with self.database.transaction() as connection:
            await subscriptions.reset_endpoint(connection, self.hung.subscription_id)

    async def _drop_unclaimed(self) -> None:
        statement = text("DELETE FROM delivery WHERE subscription_id = :id AND claim IS NULL")
        async with self.database.transaction() as connection:
            await connection.execute(statement, {"id": self.hung.subscription_id})


@contextlib.asynccontextmanager
async def dispatching(bench: Bench) -> AsyncIterator[Dispatching]:
    targets = [f"/{number}" for number in range(SUBSCRIPTIONS)]
    secrets = {target: new_secret() for target in (*targets, HUNG)}
    [dispatcher] = [service for service in SERVICES if service.name == DISPATCHER]
    async with bench.stack([dispatcher]) as stack, running_receiver(secrets) as receiver:
        environment = stack.environment
        database = open_database(environment.database_urls[DISPATCHER], "bench")
        try:
            endpoints = [(receiver.base_url + target, secret) for target, secret in secrets.items()]
            keyring = storage_of(environment.secrets, DISPATCHER)
            *answering, hung = await subscribe(database, keyring, endpoints)
            yield Dispatching(bench, stack, database, receiver, answering, hung)
        finally:
            await database.close()
