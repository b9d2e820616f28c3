"""The outbox of a service, relayed to the broker as long as the process lives.

Readiness check `outbox-relay`: in the last 20 s this process completed a round as the leader, with all its events
confirmed, or it saw another process hold the lease. The check fails while no process leads, and while the broker does
not confirm events. It does not fail for an event that no queue takes: the event is set aside, and the metric
`bankside_events_unroutable` counts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn

import structlog

from libs.contracts.events import Event
from libs.handling.metrics import (
    EVENTS_RELAYED,
    EVENTS_RETURNED,
    EVENTS_UNROUTABLE,
    OLDEST_EVENT_SECONDS,
)
from libs.handling.outage_log import OutageLog
from libs.handling.periodic import repeat
from libs.messaging.broker import Broker
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.event_publisher import EventPublisher
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leadership import ELECTION_SECONDS, LeadershipLost
from libs.persistence.relaying import Relay, count_unroutable, oldest_seconds
from libs.runtime.health import Progress
from libs.runtime.process import Process

PROGRESS_SECONDS = 20.0
"""A round that waits for the broker's confirms ends after 15 s."""
MEASURE_SECONDS = 15.0
TRANSIENT = (*BROKER_ERRORS, LeadershipLost)
"""Errors after which the relay begins again, beside those that say that the database is away."""


@asynccontextmanager
async def run_relay(process: Process, broker: Broker, database: Database) -> AsyncIterator[None]:
    """Publish the service's events during the body, each directly after its commit."""
    publisher = EventPublisher()
    broker.add(publisher)
    progress = Progress(PROGRESS_SECONDS)
    process.readiness.add("outbox-relay", progress.check)
    log = structlog.get_logger("outbox")

    async def publish(events: Sequence[Event]) -> Collection[str]:
        returned = await publisher.publish(events)
        EVENTS_RELAYED.inc(len(events) - len(returned))
        if returned:
            EVENTS_RETURNED.inc(len(returned))
            types = sorted({event.type for event in returned})
            log.error("events_unroutable", count=len(returned), types=types)
        return {event.event_id for event in returned}

    relay = Relay(database, publish, progress.made)
    async with (
        process.background("outbox-relay", _relay_for_ever(relay)),
        process.background(
            "outbox-metrics", repeat("outbox", lambda: _measure(database), MEASURE_SECONDS)
        ),
    ):
        yield


async def _relay_for_ever(relay: Relay) -> NoReturn:
    """Relay, for ever; begin again after transient errors: the broker or the database is away, leadership is lost."""
    waits = OutageLog("outbox", "relay_waits", TRANSIENT)
    while True:
        try:
            await relay.run_while_leading()
        except Exception as error:
            if not (isinstance(error, TRANSIENT) or is_away(error)):
                raise
            waits.note(error)
        await asyncio.sleep(ELECTION_SECONDS)


async def _measure(database: Database) -> None:
    async with database.transaction() as connection:
        OLDEST_EVENT_SECONDS.set(await oldest_seconds(connection))
        EVENTS_UNROUTABLE.set(await count_unroutable(connection))
