"""Increase's events: its list of them in the order of their time, read as a feed that goes on where it was left.

The list gives no cursor at its end, so that the place to go on from is a time: events are read again from a few seconds
before the newest one that was applied, every now and then from minutes before it, and those whose ids were applied are
left out. So none is lost or given twice when several have one time, or when one appears late.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from increase import AsyncIncrease, omit

from libs.contracts.errors import ProviderError
from libs.contracts.exact_json import decode
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.lists import LARGEST_PAGE

OVERLAP = timedelta(minutes=5)
"""An event that appears in the list later than this after its time is not seen."""
SHORT_OVERLAP = timedelta(seconds=5)
"""Read again by each fetch. The whole overlap may be many pages, and a fetch at the feed's end follows several times a
second.
"""
WHOLE_EVERY_SECONDS = 15.0
"""A fetch reads the whole overlap once this time has passed since the last one that did, or when that one found late
events.
"""
WHOLE_OVERLAP = OVERLAP + timedelta(seconds=WHOLE_EVERY_SECONDS + FETCH_SECONDS)
"""Read again by a fetch that reads the overlap whole: an event that becomes visible just after one waits for the next,
while short fetches and their length move the time of the newest event on.
"""
REMEMBERED = 1000
"""Applied events in a state. With more of them in the overlap, the overlap is shorter."""
PAGES = 60
"""Of one fetch, at most."""


class Event(msgspec.Struct, frozen=True):
    """Something that happened to an object. What is known of it stands in the object."""

    id: str
    category: str
    associated_object_id: str
    created_at: datetime


class _Window(msgspec.Struct):
    """The events that were applied and are listed again: those of `categories` from `floor` on."""

    categories: list[str]
    floor: datetime
    newest: datetime
    applied_ms: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """Of each event, by a digest of its id: each entry of a page carries the state, which has to be short."""

    def has(self, event_id: str) -> bool:
        return _digest(event_id) in self.applied_ms

    def begin(self, *, is_whole: bool) -> datetime:
        """From when events are listed."""
        return self.floor if is_whole else max(self.floor, _before(self.newest, SHORT_OVERLAP))

    def add(self, event_id: str, at: datetime) -> None:
        self.applied_ms[_digest(event_id)] = _milliseconds(at)
        self.newest = max(self.newest, at)
        floor = _before(self.newest, WHOLE_OVERLAP)
        if len(self.applied_ms) > REMEMBERED:
            oldest_ms = sorted(self.applied_ms.values())[-REMEMBERED]
            floor = max(floor, datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=oldest_ms))
        if floor > self.floor:
            self.floor, floor_ms = floor, _milliseconds(floor)
            self.applied_ms = {known: ms for known, ms in self.applied_ms.items() if ms >= floor_ms}


def _digest(event_id: str) -> str:
    digest = hashlib.blake2b(event_id.encode(), digest_size=9).digest()
    return base64.b64encode(digest).decode()


def _milliseconds(at: datetime) -> int:
    """Since 1970, rounded down."""
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _before(newest: datetime, overlap: timedelta) -> datetime:
    """A time that is ahead of the clock does not take the overlap with it."""
    return min(newest, datetime.now(UTC)) - overlap


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """An event of Increase's list.

    Args:
        item: as it came, not decoded.
        event_id: Increase's, or made of the item when it has none.
        state: where the feed goes on once this event is applied.
    """

    item: Any
    event_id: str
    state: str

    @property
    def object_id(self) -> str | None:
        """None: the item names no object."""
        match self.item:
            case {"associated_object_id": str(object_id)}:
                return object_id or None
            case _:
                return None

    @property
    def category(self) -> str | None:
        match self.item:
            case {"category": str(category)}:
                return category
            case _:
                return None

    def decoded(self) -> Event:
        """Raises msgspec.ValidationError: it is not of an event's shape."""
        return msgspec.convert(self.item, Event)


class EventFeed:
    """The events of some categories.

    Args:
        categories: of Increase's, such as `wire_transfer.updated`.
    """

    def __init__(self, client: IncreaseClient, categories: Sequence[str]) -> None:
        self._client = client
        self._categories = list(categories)
        self._whole_at = 0.0

    async def fetch(self, state: str | None, limit: int) -> list[ListedEvent]:
        """The next events, at most `limit`; none at the feed's end.

        Args:
            state: of the event that was applied last; None: begin with the first one that there is.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        """
        window = None if state is None else _decoded(state)
        found: list[ListedEvent] = []
        listed = 0
        begun = time.monotonic()
        is_whole = not self._whole_at or begun - self._whole_at >= WHOLE_EVERY_SECONDS
        # What only a whole fetch finds.
        late_before = window.begin(is_whole=False) if window else None
        is_any_late = False
        async for item in self._items(window.begin(is_whole=is_whole) if window else None):
            listed += 1
            event_id = _id_of(item)
            if window is not None and window.has(event_id):
                continue
            time_of_item = _time_of(item)
            at = time_of_item or (window.newest if window else datetime.fromtimestamp(0, UTC))
            if late_before is not None:
                is_any_late |= time_of_item is None or time_of_item < late_before
            window = window or _Window(self._categories, _before(at, WHOLE_OVERLAP), at)
            window.categories = self._categories
            window.add(event_id, at)
            found.append(ListedEvent(item, event_id, msgspec.json.encode(window).decode()))
            if len(found) == limit:
                break
        if not found and listed >= PAGES * LARGEST_PAGE:
            raise ProviderError  # more events of one time than a fetch reads: none of them is passed over
        if is_whole:
            # Read whole again until what is late is in the state: an event that cannot be applied stops the feed.
            self._whole_at = 0.0 if is_any_late else begun
        return found

    async def _items(self, floor: datetime | None) -> AsyncIterator[Any]:
        """The list's items from a time on, as many as one fetch reads."""
        deadline = time.time() + FETCH_SECONDS
        cursor: str | None = None
        for _ in range(PAGES):
            items, following = await self._page(floor, cursor, deadline)
            for item in items:
                yield item
            if following is None:
                return
            if following == cursor:
                raise ProviderError  # a list that does not advance would be read without end
            cursor = following

    async def _page(
        self, floor: datetime | None, cursor: str | None, deadline: float
    ) -> tuple[list[Any], str | None]:
        async def call(sdk: AsyncIncrease) -> Any:
            # Not as the SDK's model, whose categories are those of one release: Increase adds to them at any time.
            answer = await sdk.events.with_raw_response.list(
                category={"in": self._categories},  # type: ignore[arg-type]
                created_at={"on_or_after": floor} if floor else omit,
                cursor=cursor or omit,
                limit=LARGEST_PAGE,
                order_by={"field": "created_at", "direction": "ascending"},
            )
            return decode(answer.http_response.content)

        try:
            answer = await self._client.read("list_events", call, deadline=deadline)
            items = msgspec.convert(answer["data"], list[Any])
            return items, msgspec.convert(answer["next_cursor"], str | None)
        except (ProviderRefusal, msgspec.ValidationError, KeyError, TypeError) as error:
            raise ProviderError from error


async def is_followed(
    client: IncreaseClient, state: str | None, categories: Sequence[str] = ()
) -> bool:
    """Whether there are events after those that were applied. Raises as `EventFeed.fetch`.

    Args:
        categories: of the feed, where no event of it was applied.
    """
    followed = categories if state is None else _decoded(state).categories
    return bool(await EventFeed(client, followed).fetch(state, 1))


def _decoded(state: str) -> _Window:
    return msgspec.json.decode(state, type=_Window)


def _id_of(item: Any) -> str:
    match item:
        case {"id": str(event_id)}:
            return event_id
        case _:
            return hashlib.sha256(msgspec.json.encode(item, order="sorted")).hexdigest()


def _time_of(item: Any) -> datetime | None:
    try:
        at = msgspec.convert(item["created_at"], datetime)
    except (msgspec.ValidationError, KeyError, TypeError):
        return None
    return at.astimezone(UTC) if at.tzinfo else None
