"""The engine as a part of the process: events in, signed posts out.

async with run_engine(process, broker, database, poster, keyring, settings, clock=clock) as wake:
    ...  # `broker.start` comes after
"""

from __future__ import annotations

import gc
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

from libs.contracts.sensitive import Sealer
from libs.handling.periodic import tolerating_outage
from libs.messaging.broker import Broker
from libs.messaging.event_consumer import EventConsumer
from libs.persistence.engine import Database
from libs.runtime.process import Process
from services.webhook_dispatcher.engine.attempts import AttemptRecorder
from services.webhook_dispatcher.engine.delivering import AttemptedDelivery
from services.webhook_dispatcher.engine.dispatcher import Dispatcher
from services.webhook_dispatcher.engine.ingest import Ingest
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import POST_SECONDS, DeliverySettings
from services.webhook_dispatcher.engine.schedule import Random
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.engine.upkeep import Upkeep
from services.webhook_dispatcher.metrics import measure_for_ever
from services.webhook_dispatcher.ports import Poster
from services.webhook_dispatcher.repository.partitions import Partitions

CONNECTIONS = 9
"""Connections to the database: one for each background task, and one that renews the lease of the upkeep. The clock is
read in a millisecond, on one that is free.
"""
STOP_SECONDS = 3.0
DRAIN_SECONDS = POST_SECONDS + 2.0
"""For posts under way to end and to be recorded."""


COLLECTOR = (10_000, 20, 100)
"""Thresholds of the garbage collector's generations. Deliveries under way are thousands of objects that live for
milliseconds: with the default of 700 for the youngest generation, collecting takes a third of the processor time
(measured with 256 deliveries under way).
"""


@asynccontextmanager
async def run_engine(
    process: Process,
    broker: Broker,
    database: Database,
    poster: Poster,
    sealer: Sealer,
    settings: DeliverySettings,
    *,
    clock: Callable[[], datetime],
    random: Random = randomness.random,
) -> AsyncIterator[Callable[[], None]]:
    """Record and deliver events during the body, once the broker is started.

    Yields a function to be called when something has become due, so that it need not wait for the next sweep.

    Args:
        database: with `CONNECTIONS`, used by the engine alone, so that deliveries do not wait for commands and queries.
        poster: for as many posts at one time as `settings.slots`.
        sealer: opens the secrets of subscriptions.
    """
    partitions = Partitions(database)

    def attempted(delivery: AttemptedDelivery) -> None:
        recorder.add(delivery)

    dispatcher = Dispatcher(database, poster, Signer(sealer), settings, clock, attempted)
    unavailability = Unavailability(database, partitions, settings, clock, dispatcher.wake)
    recorder = AttemptRecorder(
        database, partitions, unavailability, settings, clock, random, dispatcher.recorded
    )
    retention = Retention(database, partitions, settings)
    upkeep = Upkeep(database, partitions, unavailability, retention, dispatcher.wake)
    ingest = Ingest(database, partitions, settings.retention, clock, dispatcher.added)
    consumer = EventConsumer(process.service, ingest.record)
    broker.add(consumer)
    # Those that events of this service need; events from the broker have theirs made when they arrive.
    await tolerating_outage("webhook-partitions", upkeep.make_ahead)
    with _rare_collections():
        async with (
            process.background("webhook-metrics", measure_for_ever(database, clock)),
            process.background("webhook-upkeep", upkeep.keep_for_ever()),
            process.background("webhook-expired-leases", upkeep.free_leases_for_ever()),
            process.background("webhook-failing-endpoints", unavailability.look_for_ever()),
            process.background("webhook-holding", unavailability.hold_for_ever()),
            process.background("webhook-attempts", recorder.run()),
            process.background("webhook-dispatcher", dispatcher.run()),
            process.background("event-ingest", consumer.run()),
        ):
            try:
                yield dispatcher.wake
            finally:
                try:
                    await consumer.stop(STOP_SECONDS)
                finally:
                    await dispatcher.stop(DRAIN_SECONDS)


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTOR)
    try:
        yield
    finally:
        gc.set_threshold(*before)
