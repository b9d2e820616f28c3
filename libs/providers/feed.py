"""Following a provider's event feed: pages after a position, each applied together with the move of the position.

Here is the loop; `libs.runtime.feeds` runs it under a lock, on a cursor in the service's database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Protocol, TypeVar

from prometheus_client import Counter, Gauge

LONGEST_PAUSE_SECONDS = 30.0

POSITION = Gauge("bankside_feed_position", "Position up to which a feed was applied", ("feed",))
ENTRIES = Counter("bankside_feed_entries", "Feed entries applied", ("feed",))
FAILURES = Counter(
    "bankside_feed_failures", "Pages that could not be fetched or applied", ("feed",)
)


class FeedEntry(Protocol):
    @property
    def position(self) -> int: ...


EntryT = TypeVar("EntryT", bound=FeedEntry)
EntryT_contra = TypeVar("EntryT_contra", bound=FeedEntry, contravariant=True)

Fetch = Callable[[int, int], Awaitable[Sequence[EntryT]]]
"""(after, limit) -> the next entries in the order of their positions; empty at the feed's end."""


class Journal(Protocol[EntryT_contra]):
    """Where the position is kept, beside what the entries cause."""

    async def position(self) -> int:
        """The position up to which entries were applied; 0 at first."""
        ...

    async def apply(self, entries: Sequence[EntryT_contra], moved_from: int, moved_to: int) -> None:
        """Apply the entries and move the position, in one transaction."""
        ...


class NotLeading(Exception):
    """Raised by a journal to end the tail: another process may follow the feed now."""


class FeedOutOfOrder(Exception):
    """The provider's feed is not ascending from the position that was asked for."""


async def tail_feed(
    feed: str,
    fetch: Fetch[EntryT],
    journal: Journal[EntryT],
    *,
    poll_seconds: float,
    page_size: int,
    log: Any,
) -> NoReturn:
    """Apply page after page, for ever; full pages at once, else after `poll_seconds`.

    A page that cannot be fetched or applied, whatever the reason, is logged, counted and tried again after a pause that
    doubles up to 30 s: a feed that stands still must not take its service down.

    Raises:
        NotLeading: the journal said so.
    """
    pause_seconds = poll_seconds
    while True:
        try:
            more = await _apply_page(feed, fetch, journal, page_size)
        except NotLeading:
            raise
        except Exception as error:  # the contract above: tried again, never skipped
            FAILURES.labels(feed).inc()
            log.warning("feed_stands_still", feed=feed, retry_seconds=pause_seconds, exc_info=error)
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(max(pause_seconds, 0.1) * 2, LONGEST_PAUSE_SECONDS)
            continue
        pause_seconds = poll_seconds
        if not more:
            await asyncio.sleep(poll_seconds)


async def _apply_page(
    feed: str, fetch: Fetch[EntryT], journal: Journal[EntryT], page_size: int
) -> bool:
    """Whether there may be more."""
    after = await journal.position()
    entries = await fetch(after, page_size)
    if entries:
        positions = [after, *(entry.position for entry in entries)]
        if any(later <= earlier for earlier, later in pairwise(positions)):
            raise FeedOutOfOrder(feed)
        await journal.apply(entries, after, positions[-1])
        ENTRIES.labels(feed).inc(len(entries))
        after = positions[-1]
    POSITION.labels(feed).set(after)
    return len(entries) >= page_size
