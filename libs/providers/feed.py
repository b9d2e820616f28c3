"""Following a provider's event feed: pages after a position, each applied together with the move of the position.

Here is the loop; `libs.handling.feeds` runs it under a lease, on a cursor in the service's database.

A page that cannot be fetched or applied stops the feed: it is tried again with backoff, and where the feed stands is
recorded. When one entry is at fault, since it cannot be decoded or applied, those before it are applied, and the
record names it, so that an operator can have it skipped. Nothing is skipped otherwise.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NoReturn, Protocol, TypeVar

from prometheus_client import Counter, Gauge

from libs.backoff import Backoff

LONGEST_PAUSE_SECONDS = 30.0
SHORTEST_PAUSE_SECONDS = 0.05
OUTLINE_FIELDS = 50
OUTLINE_DEPTH = 4
NAME_LENGTH = 64
PROBLEM_LENGTH = 500

LARGEST_POSITION = 2**63 - 1

POSITION = Gauge("bankside_feed_position", "Position up to which a feed was applied", ("feed",))
ENTRIES = Counter("bankside_feed_entries", "Feed entries applied", ("feed",))
FAILURES = Counter(
    "bankside_feed_failures", "Pages that could not be fetched or applied", ("feed",)
)
STOPPED_SECONDS = Gauge(
    "bankside_feed_stopped_seconds",
    "For how long a feed has stood still, at the process that follows it; 0 while it moves",
    ("feed",),
)
SKIPPED = Counter(
    "bankside_feed_entries_skipped", "Feed entries skipped by an operator's decision", ("feed",)
)


class FeedEntry(Protocol):
    @property
    def position(self) -> int: ...


EntryT = TypeVar("EntryT", bound=FeedEntry)
EntryT_contra = TypeVar("EntryT_contra", bound=FeedEntry, contravariant=True)

DecodedT = TypeVar("DecodedT")

Fetch = Callable[[int, int], Awaitable[Sequence[EntryT]]]
"""(after, limit) -> the next entries in the order of their positions; empty at the feed's end. See `decode_entries` for
entries that cannot be decoded.
"""


@dataclass(frozen=True, slots=True)
class FaultyEntry:
    """The entry at which a feed stands still: nothing of its values but its position and type.

    Args:
        problem: a sentence.
        outline: its fields and their types, as JSON.
    """

    position: int
    type: str | None
    problem: str
    outline: str | None


class UndecodableEntry(Exception):
    """Raised by a `Fetch` when the next entry is not of the shape that this release knows."""

    def __init__(self, entry: FaultyEntry) -> None:
        super().__init__(f"entry at {entry.position}: {entry.problem}")
        self.entry = entry


class UnappliableEntry(Exception):
    """What one entry causes cannot be recorded, whenever it is tried."""

    def __init__(self, entry: FaultyEntry) -> None:
        super().__init__(f"entry at {entry.position}: {entry.problem}")
        self.entry = entry


class Journal(Protocol[EntryT_contra]):
    """Where the position is kept, beside what the entries cause."""

    async def position(self) -> int:
        """The position up to which entries were applied; 0 at first."""
        ...

    async def apply(self, entries: Sequence[EntryT_contra], moved_from: int, moved_to: int) -> None:
        """Apply the entries and move the position, in one transaction.

        Raises:
            NotNow: no entry can be applied at the moment.
            NotLeading
        """
        ...

    async def stand_still(self, position: int, entry: FaultyEntry | None, problem: str) -> float:
        """Record that the feed stands still after `position`. For how many seconds it has."""
        ...

    async def skip(self, position: int, entry: FaultyEntry) -> bool:
        """Move the position past the entry, if an operator has said to skip it."""
        ...

    async def move_on(self) -> None:
        """Record that the feed moves."""
        ...


class NotLeading(Exception):
    """Raised by a journal to end the tail: another process may follow the feed now."""


class NotNow(Exception):
    """Raised by a journal when no entry is at fault: the database or another service cannot be used."""


class FeedOutOfOrder(Exception):
    """The provider's feed is not ascending from the position that was asked for."""


def decode_entries(
    items: Sequence[Any], after: int, decode: Callable[[Any], DecodedT]
) -> list[DecodedT]:
    """The entries of a page up to the first one that cannot be decoded, for any reason.

    An entry whose position cannot be read is taken to be at the position after the one before it: nothing else is
    skipped with it.

    Raises:
        UndecodableEntry: the first one cannot be decoded.
    """
    decoded: list[DecodedT] = []
    for item in items:
        try:
            decoded.append(decode(item))
        except Exception as error:
            if decoded:
                break
            raise UndecodableEntry(_faulty(item, after, error)) from error
    return decoded


def _faulty(item: Any, after: int, error: Exception) -> FaultyEntry:
    fields = item if isinstance(item, dict) else {}
    position, kind = fields.get("position"), fields.get("type")
    return FaultyEntry(
        position=position
        if type(position) is int and after < position <= LARGEST_POSITION
        else after + 1,
        type=kind[:NAME_LENGTH] if isinstance(kind, str) and kind.isprintable() else None,
        problem=_sentence("it cannot be decoded", error),
        outline=json.dumps(_outline(item, OUTLINE_DEPTH)),
    )


def _outline(value: Any, depth: int) -> Any:
    """Names of fields and types of values, in place of the values."""
    match value:
        case dict() if depth:
            return {
                str(name)[:NAME_LENGTH]: _outline(inner, depth - 1)
                for name, inner in islice(value.items(), OUTLINE_FIELDS)
            }
        case list() if depth:
            return [_outline(inner, depth - 1) for inner in value[:1]]
        case _:
            return type(value).__name__


def _sentence(what: str, error: BaseException) -> str:
    """What is wrong, by place and kind. Messages of unknown errors may quote the entry: only their notes are shown."""
    details = [*getattr(error, "__notes__", ())]
    if type(error).__module__.startswith("msgspec"):
        details.append(re.sub(r"'[^']*'", "'…'", str(error)))
    return ": ".join([what, type(error).__name__, *details])[:PROBLEM_LENGTH]


def _no_progress() -> None:
    pass


async def tail_feed(
    feed: str,
    fetch: Fetch[EntryT],
    journal: Journal[EntryT],
    *,
    poll_seconds: float,
    page_size: int,
    log: Any,
    progress: Callable[[], None] = _no_progress,
) -> NoReturn:
    """Apply page after page, for ever; full pages at once, else after `poll_seconds`.

    A page that cannot be fetched or applied, for any reason, is logged, counted, recorded and tried again after a
    pause that doubles up to 30 s: a feed that stands still must not take its service down.

    Args:
        progress: called after each page that was applied, or failed and was recorded so.

    Raises:
        NotLeading: the journal said so.
    """
    backoff = Backoff(max(poll_seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
    failures = 0
    stood_still = True  # the process that led before may have recorded so
    while True:
        try:
            more = await _apply_page(feed, fetch, journal, page_size)
            if stood_still:
                await journal.move_on()
                stood_still = False
                STOPPED_SECONDS.labels(feed).set(0)
            progress()
        except NotLeading:
            raise
        except Exception as error:  # the contract above: tried again, never skipped
            stood_still = True
            pause_seconds = backoff.pause_seconds(failures + 1)
            if await _stand_still(feed, journal, error, log, pause_seconds, progress):
                continue
            failures += 1
            await asyncio.sleep(pause_seconds)
            continue
        failures = 0
        if not more:
            await asyncio.sleep(poll_seconds)


async def _stand_still(
    feed: str,
    journal: Journal[EntryT],
    error: Exception,
    log: Any,
    pause_seconds: float,
    progress: Callable[[], None],
) -> bool:
    """Record the stop. True when the feed was moved past the entry by an operator's decision instead.

    A stop that cannot be recorded is no progress: the feed's readiness check fails in time.

    Raises:
        NotLeading
    """
    entry = error.entry if isinstance(error, UndecodableEntry | UnappliableEntry) else None
    cause = error.__cause__ if isinstance(error, NotNow) and error.__cause__ else error
    try:
        position = await journal.position()
        if entry is not None and await journal.skip(position, entry):
            SKIPPED.labels(feed).inc()
            log.warning("feed_entry_skipped", feed=feed, position=entry.position, type=entry.type)
            return True
        problem = entry.problem if entry else _sentence("no page can be applied", cause)
        STOPPED_SECONDS.labels(feed).set(await journal.stand_still(position, entry, problem))
    except NotLeading:
        raise
    except Exception as unrecorded:  # an error of the bookkeeping must not hide the stop
        log.warning("feed_stop_not_recorded", feed=feed, exc_info=unrecorded)
        FAILURES.labels(feed).inc()
        return False
    progress()
    FAILURES.labels(feed).inc()
    log.warning(
        "feed_stands_still",
        feed=feed,
        entry=entry.position if entry else None,
        retry_seconds=pause_seconds,
        exc_info=error,
    )
    return False


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
        await _apply(feed, journal, entries, after)
        after = positions[-1]
    POSITION.labels(feed).set(after)
    return len(entries) >= page_size


async def _apply(
    feed: str, journal: Journal[EntryT], entries: Sequence[EntryT], after: int
) -> None:
    """Together; when that fails although it could be done now, one by one up to the entry at fault.

    Raises:
        UnappliableEntry: those before it are applied.
    """
    try:
        await journal.apply(entries, after, entries[-1].position)
    except (NotLeading, NotNow):
        raise
    except Exception as error:
        [first, *others] = entries
        if not others:
            problem = _sentence("it cannot be applied", error)
            kind = getattr(first, "type", None)
            raise UnappliableEntry(FaultyEntry(first.position, kind, problem, None)) from error
    else:
        ENTRIES.labels(feed).inc(len(entries))
        return
    for entry in entries:
        await _apply(feed, journal, [entry], after)
        after = entry.position
