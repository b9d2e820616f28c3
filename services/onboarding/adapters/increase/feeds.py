"""What changed at Increase: its events say which object, the object is read.

An event about an entity says to its customer only that something changed: see `verdicts`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from increase import AsyncIncrease

from libs.gathering import gather_or_cancel
from libs.providers.errors import AttemptFailed, Failure, ProviderRefusal, read_error
from libs.providers.feed_entries import (
    FETCH_SECONDS,
    EntryT,
    FeedCursor,
    Place,
    decode_entries,
    shown_type,
)
from libs.providers.increase.accounts import Account, retrieve_account, status_of
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.entities import Entity, retrieve_entity
from libs.providers.increase.events import EventFeed, ListedEvent
from libs.providers.increase.refusals import NOT_FOUND
from services.onboarding.models import AccountEntry, AccountReport, IdentityEntry, IdentityReport

LARGEST_FETCH = 100
"""Events, each of which has its object read."""
AT_ONCE = 8

ObjectT = TypeVar("ObjectT")
_Found: TypeAlias = ObjectT | ProviderRefusal | AttemptFailed


class IdentityFeed:
    """See `feed_entries.Fetch`. An entity that is not ours has no report."""

    def __init__(self, client: IncreaseClient) -> None:
        self._changes = _Changes(client, "entity.updated", "get_entity", retrieve_entity)

    async def fetch(self, after: FeedCursor, limit: int) -> list[IdentityEntry]:
        return await self._changes.fetch(after, limit, _identity_entry)


class FinancialFeed:
    """See `feed_entries.Fetch`."""

    def __init__(self, client: IncreaseClient) -> None:
        self._changes = _Changes(client, "account.updated", "get_account", retrieve_account)

    async def fetch(self, after: FeedCursor, limit: int) -> list[AccountEntry]:
        return await self._changes.fetch(after, limit, _account_entry)


def _identity_entry(entity: Entity | None, place: Place) -> IdentityEntry:
    report = None
    if entity is not None and entity.description is not None:
        report = IdentityReport(business_id=entity.description, identity_id=entity.id)
    return IdentityEntry(
        position=place.position,
        type=place.type or "",
        report=report,
        provider_cursor=place.provider_cursor,
        event_id=place.event_id,
    )


def _account_entry(account: Account | None, place: Place) -> AccountEntry:
    report = None
    if account is not None:
        report = AccountReport(account_id=account.id, customer_id="", status=status_of(account))
    return AccountEntry(
        position=place.position,
        type=place.type or "",
        report=report,
        provider_cursor=place.provider_cursor,
        event_id=place.event_id,
    )


class _Changes(Generic[ObjectT]):
    """The objects of one category's events. Positions count the events that were applied."""

    def __init__(
        self,
        client: IncreaseClient,
        category: str,
        operation: str,
        retrieve: Callable[[AsyncIncrease, str], Awaitable[ObjectT]],
    ) -> None:
        self._client = client
        self._events = EventFeed(client, [category])
        self._operation = operation
        self._retrieve = retrieve

    async def fetch(
        self, after: FeedCursor, limit: int, entry: Callable[[ObjectT | None, Place], EntryT]
    ) -> list[EntryT]:
        """The next events as entries of a feed, each made of its object as it is now.

        Args:
            entry: of an object; None: it is not there any more.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
            UndecodableEntry: the next event, or its object, is not of the shape that this release knows.
        """
        listed = await self._events.fetch(after.provider_cursor, min(limit, LARGEST_FETCH))
        found = await self._objects(listed)

        def decode(event: ListedEvent, place: Place) -> EntryT:
            what = found[event.decoded().associated_object_id]
            if isinstance(what, ProviderRefusal) and what.code == NOT_FOUND:
                return entry(None, place)
            if isinstance(what, ProviderRefusal | AttemptFailed):
                raise what
            return entry(what, place)

        return decode_entries(_readable(listed, found), after.position, decode, _place)

    async def _objects(self, listed: Sequence[ListedEvent]) -> Mapping[str, _Found[ObjectT]]:
        """Each object once, with what kept it from being read."""
        deadline = time.time() + FETCH_SECONDS
        capacity = asyncio.Semaphore(AT_ONCE)
        found: dict[str, _Found[ObjectT]] = {}

        async def read(object_id: str) -> None:
            async with capacity:
                try:
                    found[object_id] = await self._client.repeated(
                        self._operation,
                        lambda sdk: self._retrieve(sdk, object_id),
                        deadline=deadline,
                    )
                except (ProviderRefusal, AttemptFailed) as error:
                    found[object_id] = error

        object_ids = {event.object_id for event in listed if event.object_id}
        await gather_or_cancel(map(read, object_ids), name=self._operation)
        return found


def _readable(
    listed: Sequence[ListedEvent], found: Mapping[str, _Found[ObjectT]]
) -> Sequence[ListedEvent]:
    """The events up to the first one whose object could not be read for now. Raises as a read when it is the first."""
    for number, event in enumerate(listed):
        what = found.get(event.object_id or "")
        if isinstance(what, AttemptFailed) and what.failure is not Failure.UNREADABLE:
            if number == 0:
                raise read_error(what.failure) from what
            return listed[:number]
    return listed


def _place(event: ListedEvent, after: int) -> Place:
    return Place(after + 1, shown_type(event.category), event.state, event.event_id)
