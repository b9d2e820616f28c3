"""What became of wires at Increase: its events say which wire changed, the wire says how."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from libs.contracts.ids import parse_made_id
from libs.contracts.wires import WireState
from libs.gathering import gather_or_cancel
from libs.providers.errors import AttemptFailed, Failure, ProviderRefusal, read_error
from libs.providers.feed_entries import (
    FETCH_SECONDS,
    FeedCursor,
    Place,
    decode_entries,
    shown_type,
)
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.events import EventFeed, ListedEvent
from libs.providers.increase.new_statuses import note_new_status
from libs.providers.increase.wire_states import STATES
from libs.providers.increase.wires import Wire, retrieve_wire
from libs.providers.moments import aware
from services.payments.adapters.increase.wire_text import words_of
from services.payments.models import FeedEntry, WireReport

CATEGORIES = ("wire_transfer.created", "wire_transfer.updated")
AT_ONCE = 8
"""Wires that are read. Those of the first events come first: what is not read in time is left for the next fetch."""

WireRead = Wire | ProviderRefusal | AttemptFailed


@dataclass(frozen=True, slots=True)
class _Changed:
    """An event with its wire, or why that could not be read; None: the event names no wire.

    `last_changed_at`: of the last event about this wire that was listed with this one. The wire is read after all of
    them, so that its state is not older.
    """

    listed: ListedEvent
    wire: WireRead | None
    last_changed_at: datetime | None


class WireFeed:
    """See `feed_entries.Fetch`. Positions count the entries that were applied."""

    def __init__(self, client: IncreaseClient) -> None:
        self._client = client
        self._events = EventFeed(client, CATEGORIES)

    async def fetch(self, after: FeedCursor, limit: int) -> list[FeedEntry]:
        """Entries about wires of others have no report, nor have those about a wire in a status that Increase has
        added: a later event of the wire reads its status again.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
            UndecodableEntry: the next event, or its wire, is not of the shape that this release knows.
        """
        listed = await self._events.fetch(after.provider_cursor, limit)
        wires = await self._wires(listed)
        changed_at = _last_changes(listed)
        items: list[dict[str, Any]] = []
        for one in listed:
            wire = wires.get(one.object_id or "")
            if isinstance(wire, AttemptFailed) and wire.failure is not Failure.UNREADABLE:
                if not items:
                    raise read_error(wire.failure) from wire
                break
            # As a dict, the description of an item at fault has the outline of its event.
            changed = _Changed(one, wire, changed_at.get(one.object_id or ""))
            items.append({"event": one.item, "changed": changed})
        return decode_entries(items, after.position, _entry, _place)

    async def _wires(self, listed: Sequence[ListedEvent]) -> Mapping[str, WireRead]:
        """Each wire once, with what kept it from being read."""
        deadline = time.time() + FETCH_SECONDS
        capacity = asyncio.Semaphore(AT_ONCE)
        found: dict[str, WireRead] = {}

        async def read(wire_id: str) -> None:
            async with capacity:
                try:
                    found[wire_id] = await self._client.repeated(
                        "get_wire",
                        lambda sdk: retrieve_wire(sdk, wire_id),
                        deadline=deadline,
                    )
                except (ProviderRefusal, AttemptFailed) as error:
                    found[wire_id] = error

        wire_ids = dict.fromkeys(one.object_id for one in listed if one.object_id)
        await gather_or_cancel(map(read, wire_ids), name="get_wire")
        return found


def _last_changes(listed: Sequence[ListedEvent]) -> Mapping[str, datetime]:
    """By wire, the time of the last event that can be decoded."""
    times: dict[str, datetime] = {}
    for one in listed:
        with suppress(msgspec.ValidationError):
            event = one.decoded()
            times[event.associated_object_id] = event.created_at
    return times


def _place(item: Any, after: int) -> Place:
    listed: ListedEvent = item["changed"].listed
    return Place(after + 1, shown_type(listed.category), listed.state, listed.event_id)


def _entry(item: Any, place: Place) -> FeedEntry:
    changed: _Changed = item["changed"]
    event, wire = changed.listed.decoded(), changed.wire
    if not isinstance(wire, Wire):
        raise wire or ValueError("the event names no wire")
    is_ours = parse_made_id(wire.idempotency_key or "") is not None
    return FeedEntry(
        position=place.position,
        type=event.category,
        report=_report(wire, changed.last_changed_at or event.created_at) if is_ours else None,
        provider_cursor=place.provider_cursor,
        event_id=place.event_id,
    )


def _report(wire: Wire, changed_at: datetime) -> WireReport | None:
    """None: Increase has added the wire's status since this release."""
    state = STATES.get(wire.status)
    if state is None:
        note_new_status("wire_transfer", wire.status)
        return None
    return WireReport(
        transaction_id=wire.idempotency_key or "",
        wire_state=state,
        occurred_at=aware(_reached_at(wire, state) or changed_at),
        reason=words_of(wire),
    )


def _reached_at(wire: Wire, state: WireState) -> datetime | None:
    """When the wire came into its state; None: Increase does not say it of this state."""
    if state is WireState.SUBMITTED:
        return wire.created_at
    if wire.status == "canceled" and wire.cancellation is not None:
        return wire.cancellation.canceled_at
    if wire.status == "reversed" and wire.reversal is not None:
        return wire.reversal.created_at
    return None
