"""Entries of the financial provider's feed become events of the tenants whose customers they are about."""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog
from prometheus_client import Counter

from libs.contracts.errors import NotFound
from libs.contracts.events import new_event
from libs.handling.feed_tail import Record
from libs.persistence import outbox
from libs.persistence.async_engine import AsyncConnection
from services.ledger_read.models import FeedEntry, ReportedEvent
from services.ledger_read.ports import Ownership
from services.ledger_read.repository import last_state, next_sequences, note_state
from services.ledger_read.waiting_entries import add as add_waiting

TENANT_SECONDS = 10.0

SKIPPED = Counter(
    "bankside_feed_entries_without_event",
    "Feed entries that became no event, by reason",
    ("reason",),
)
for _reason in ("never_owned", "not_reported"):
    SKIPPED.labels(_reason)  # an alert counts these: at 0 from the start


class FeedEvents:
    """Turns pages of the feed into events. A page whose tenants cannot be asked for waits; it is never skipped."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._log = structlog.get_logger("feed")

    async def prepare(self, entries: Sequence[FeedEntry]) -> Record:
        """Find the tenants of the entries; those that wait are stored.

        Raises:
            Unavailable: onboarding cannot be asked.
        """
        without_event = 0
        strangers = 0
        waiting = [entry.waiting for entry in entries if entry.waiting is not None]
        ours: list[tuple[str, list[ReportedEvent]]] = []
        for entry in entries:
            if entry.waiting is not None:
                continue
            if entry.event is None:
                without_event += 1
                continue
            tenant = await self._tenant_of(entry.event.customer_id)
            if tenant is None:
                strangers += 1
                self._log.warning(
                    "feed_entry_of_unknown_customer", type=entry.type, position=entry.position
                )
                continue
            ours.append((tenant, [*entry.earlier, entry.event]))

        async def record(connection: AsyncConnection) -> None:
            await add_waiting(connection, waiting)
            await _record(connection, ours)
            SKIPPED.labels("nothing_to_report").inc(without_event)
            SKIPPED.labels("unknown_customer").inc(strangers)

        return record

    async def _tenant_of(self, customer_id: str) -> str | None:
        try:
            return await self._ownership.tenant_of(customer_id, time.time() + TENANT_SECONDS)
        except NotFound:
            return None


async def _record(
    connection: AsyncConnection, reported: Sequence[tuple[str, list[ReportedEvent]]]
) -> None:
    ours = [
        (tenant, event)
        for tenant, events in reported
        for event in await _not_yet_reported(connection, events)
    ]
    resources = [(event.event_type.kind, event.resource_id) for _, event in ours]
    sequences = await next_sequences(connection, resources)
    events = [
        new_event(
            event.event_type,
            event.data,
            tenant=tenant,
            customer_id=event.customer_id,
            resource_id=event.resource_id,
            sequence=sequence,
            at=event.occurred_at,
        )
        for (tenant, event), sequence in zip(ours, sequences, strict=True)
    ]
    await outbox.record(connection, *events)


async def _not_yet_reported(
    connection: AsyncConnection, events: Sequence[ReportedEvent]
) -> Sequence[ReportedEvent]:
    """The events of an entry whose states come after the state that was reported last."""
    newest = events[-1]
    if newest.state is None:
        return events
    resource = (newest.event_type.kind, newest.resource_id)
    before = await last_state(connection, resource) if len(events) > 1 else None
    if not await note_state(connection, resource, newest.state):
        return []
    states = [event.state for event in events]
    return events[states.index(before) + 1 :] if before in states else events
