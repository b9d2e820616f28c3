"""The engine as a part of the process: events in, signed posts out.

async with run_engine(process, broker, database, poster, keyring, rules) as wake:
    ...  # `broker.start` comes after
"""

from __future__ import annotations

import gc
import random as randomness
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

from libs.contracts.sensitive import Sealer
from libs.messaging.broker import Broker
from libs.messaging.event_consumer import EventConsumer
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.runtime.process import Process
from services.webhook_dispatcher.engine.attempts import AttemptRecorder
from services.webhook_dispatcher.engine.delivering import AttemptedDelivery
from services.webhook_dispatcher.engine.dispatcher import Dispatcher
from services.webhook_dispatcher.engine.ingest import Ingest
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import POST_SECONDS, Rules
from services.webhook_dispatcher.engine.schedule import Random
from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.engine.upkeep import Upkeep
from services.webhook_dispatcher.metrics import measure_for_ever
from services.webhook_dispatcher.ports import Poster
from services.webhook_dispatcher.repository.partitions import Partitions

CONNECTIONS = 9
"""Of the database: one for each of the background tasks, and the one that renews the lease of the upkeep."""
STOP_SECONDS = 3.0
DRAIN_SECONDS = POST_SECONDS + 2.0
"""For whatever was begun to end, and to be recorded."""


COLLECTOR = (10_000, 20, 100)
"""Objects made before the collector looks at the young, and how often it then looks at the older ones. The deliveries
under way are thousands of objects that live for milliseconds: at the default of 700 the collector walks them over and
over, for a third of the processor's time (measured with 256 under way).
"""


def utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def run_engine(
    process: Process,
    broker: Broker,
    database: Database,
    poster: Poster,
    sealer: Sealer,
    rules: Rules,
    *,
    clock: Callable[[], datetime] = utc_now,
    random: Random = randomness.random,
) -> AsyncIterator[Callable[[], None]]:
    """Record and deliver events during the body, once the broker is started.

    What is yielded is to be called when something has become due: it spares the wait for the poll.

    Args:
        database: for `CONNECTIONS`, and for nobody else: deliveries wait for no command and no query.
        poster: for as many posts at a time as `rules.slots`.
        sealer: opens the secrets of subscriptions.
    """
    partitions = Partitions(database)

    def attempted(delivery: AttemptedDelivery) -> None:
        recorder.add(delivery)

    dispatcher = Dispatcher(database, poster, Signer(sealer), rules, clock, attempted)
    unavailability = Unavailability(database, partitions, rules, clock, dispatcher.wake)
    recorder = AttemptRecorder(
        database, partitions, unavailability, rules, clock, random, dispatcher.recorded
    )
    retention = Retention(database, partitions, rules.retention)
    upkeep = Upkeep(database, partitions, unavailability, retention, dispatcher.wake)
    ingest = Ingest(database, partitions, rules.retention, clock, dispatcher.added)
    consumer = EventConsumer(process.service, ingest.record)
    broker.add(consumer)
    await _make_partitions(process, upkeep)
    with _rare_collections():
        async with (
            process.background("webhook-metrics", measure_for_ever(database, clock)),
            process.background("webhook-upkeep", upkeep.keep_for_ever()),
            process.background("webhook-expired-leases", upkeep.free_leases_for_ever()),
            process.background("webhook-dead-endpoints", unavailability.look_for_ever()),
            process.background("webhook-holding", unavailability.hold_for_ever()),
            process.background("webhook-attempts", recorder.run()),
            process.background("webhook-dispatcher", dispatcher.run()),
            process.background("event-ingest", consumer.run()),
        ):
            try:
                yield dispatcher.wake
            finally:
                await consumer.stop(STOP_SECONDS)
                await dispatcher.stop(DRAIN_SECONDS)


async def _make_partitions(process: Process, upkeep: Upkeep) -> None:
    """Before the first event of our own; those from the broker have theirs made when they come."""
    try:
        await upkeep.make_ahead()
    except Exception as error:
        if not is_away(error):
            raise
        process.log.warning("database_away", waiting="partitions")


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
