"""Recording events from the broker with their deliveries: each once, however often the broker delivers it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy.exc import DBAPIError

from libs import tracing
from libs.contracts.events import Event
from libs.handling.outage_log import OutageLog
from libs.messaging.topology import EVENTS, events_queue
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.retries import RETRY_SECONDS
from libs.runtime.crash import crash_point
from libs.runtime.request_log import request_log
from services.webhook_dispatcher.metrics import DELIVERIES_ADDED, EVENTS_RECORDED, INGEST_BATCH
from services.webhook_dispatcher.repository import recording
from services.webhook_dispatcher.repository.partitions import Partitions
from services.webhook_dispatcher.repository.recording import Arrival

FAULTS_OF_THE_EVENT = ("22", "23")
"""Classes of SQLSTATE: a value that cannot be stored, a constraint that is violated."""
Last = Callable[[AsyncConnection], Awaitable[None]]


def _is_fault_of_event(error: Exception) -> bool:
    """Whether recording the event would always fail. A database that is away, or not migrated, is waited for."""
    if isinstance(error, DBAPIError):
        sqlstate = str(getattr(error.driver_exception, "sqlstate", None) or "")
        return sqlstate.startswith(FAULTS_OF_THE_EVENT) and not is_away(error)
    return not is_away(error)


def _note_recorded(parent: str, event: Event, seconds: float) -> None:
    queue = events_queue("webhook_dispatcher")
    tracing.ended(
        f"process {event.type}",
        "consumer",
        parent,
        {
            **tracing.messaging(
                "process", f"{EVENTS}:{event.type}:{queue}", event.type, event.event_id
            ),
            "bankside.request_id": event.request_id,
            "bankside.resource_id": event.resource_id,
        },
        seconds=seconds,
    )


class Ingest:
    """Records batches of events.

    Args:
        retention: events from before it are refused, as are those that lie more than a day ahead.
        added: called with the subscriptions that have deliveries due, and since when.
    """

    def __init__(
        self,
        database: Database,
        partitions: Partitions,
        retention: timedelta,
        clock: Callable[[], datetime],
        added: Callable[[Sequence[UUID], datetime], None],
    ) -> None:
        self._database = database
        self._partitions = partitions
        self._retention = retention
        self._clock = clock
        self._added = added
        self._log = structlog.get_logger("ingest")
        self._not_recorded = OutageLog("ingest", "not_recorded")

    async def record(self, events: Sequence[Event], last: Last | None = None) -> set[int]:
        """Record the events, waiting for the database as long as it takes. Returns the indexes of events that can never
        be recorded.

        Args:
            last: what each transaction that records some of them ends with.
        """
        arrivals = dict(enumerate(recording.arrival_of(event) for event in events))
        accepted = {
            place: arrival
            for place, arrival in arrivals.items()
            if arrival is not None and self._is_kept(arrival)
        }
        refused = set(arrivals) - set(accepted)
        if accepted:
            refused |= await self._record(accepted, last)
        if refused:
            self._log.error("events_refused", count=len(refused))
            EVENTS_RECORDED.labels("refused").inc(len(refused))
        return refused

    def _is_kept(self, arrival: Arrival) -> bool:
        today = self._clock().date()
        return today - self._retention <= arrival.day <= today + timedelta(days=1)

    async def _record(self, arrivals: Mapping[int, Arrival], last: Last | None) -> set[int]:
        try:
            await self._until_recorded(list(arrivals.values()), last)
            return set()
        except Exception as error:
            self._log.warning("batch_split", events=len(arrivals), exc_info=error)
        refused = set()
        for place, arrival in arrivals.items():
            self._partitions.forget()
            try:
                await self._until_recorded([arrival], last)
            except Exception as error:
                self._log.error("event_not_recorded", event_id=str(arrival.id), exc_info=error)
                refused.add(place)
        return refused

    async def _until_recorded(self, arrivals: Sequence[Arrival], last: Last | None) -> None:
        """Raises what one of the events is at fault for; other errors are logged, and it is tried again."""
        while True:
            try:
                await self._commit(arrivals, last)
                return
            except Exception as error:
                if _is_fault_of_event(error):
                    raise
                self._not_recorded.note(error, events=len(arrivals))
            await asyncio.sleep(RETRY_SECONDS)

    async def _commit(self, arrivals: Sequence[Arrival], last: Last | None) -> None:
        await self._partitions.ensure("event", {arrival.day for arrival in arrivals})
        due_at, started = self._clock(), time.perf_counter()
        async with self._database.transaction() as connection:
            recorded = await recording.record_batch(connection, arrivals, due_at)
            if last is not None:
                await last(connection)
            crash_point("webhook_dispatcher.ingesting")
        crash_point("webhook_dispatcher.ingested")
        INGEST_BATCH.observe(len(arrivals))
        EVENTS_RECORDED.labels("new").inc(recorded.events)
        EVENTS_RECORDED.labels("known").inc(len(arrivals) - recorded.events)
        DELIVERIES_ADDED.inc(recorded.deliveries)
        for arrival in arrivals:
            event = arrival.event
            request_log.line(
                "event_recorded",
                event_id=event.event_id,
                type=event.type,
                resource=event.resource_id,
                request_id=event.request_id,
            )
            if (parent := tracing.parent(event.trace)) is not None:
                _note_recorded(parent, event, time.perf_counter() - started)
        if recorded.due:
            self._added(recorded.due, due_at)
