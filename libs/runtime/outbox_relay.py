"""The outbox of a service, relayed to the broker as long as the process lives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog

from libs.contracts.events import Event
from libs.messaging.broker import BROKER_ERRORS, Broker
from libs.messaging.publisher import EventPublisher
from libs.persistence.cursor import ELECTION_SECONDS
from libs.persistence.engine import Database, is_away
from libs.persistence.outbox import Relay
from libs.runtime.metrics import EVENTS_RELAYED
from libs.runtime.process import Process


@asynccontextmanager
async def run_relay(process: Process, broker: Broker, database: Database) -> AsyncIterator[Relay]:
    """Publish what the service records, during the body. `wake()` on what is yielded spares the wait for the poll."""
    publisher = EventPublisher()
    broker.add(publisher)

    async def publish(events: Sequence[Event]) -> None:
        await publisher.publish(events)
        EVENTS_RELAYED.inc(len(events))

    relay = Relay(database, publish)
    async with process.background("outbox-relay", _relay_for_ever(relay)):
        yield relay


async def _relay_for_ever(relay: Relay) -> None:
    """Begin again after what passes by itself: the broker or the database being away."""
    log = structlog.get_logger("outbox")
    while True:
        try:
            await relay.run_while_leading()
        except* BROKER_ERRORS as group:
            log.warning("relay_waits", error=type(group.exceptions[0]).__name__)
        except* Exception as group:
            if not all(is_away(error) for error in group.exceptions):
                raise
            log.warning("relay_waits", error=type(group.exceptions[0]).__name__)
        await asyncio.sleep(ELECTION_SECONDS)
