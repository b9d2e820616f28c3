"""Tailing a provider's event feed: each page is applied, and the cursor moves, in one transaction.

A page that cannot be fetched or applied stops the feed: it is tried again with backoff, and the stop is recorded. When
one entry is at fault, since it cannot be decoded or applied, those before it are applied, and the stop names it, so
that an operator can decide to skip it. No entry is skipped otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, Generic, NoReturn

from prometheus_client import Counter, Gauge

from libs.backoff import Backoff
from libs.contracts.errors import BanksideError, ProviderError
from libs.persistence import cursor, feed_events, feed_stops
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leadership import LeadershipLost, Term, fence
from libs.providers.feed_entries import (
    EntryT,
    FaultyEntry,
    FeedCursor,
    Fetch,
    UndecodableEntry,
    describe,
)
from libs.runtime.crash import crash_point

SHORTEST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_OUTAGE_PAUSE_SECONDS = 3.0
"""When another service or the database could not be used: it may be back within seconds, and trying costs little."""

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
REPEATED = Counter(
    "bankside_feed_entries_repeated",
    "Feed entries that the provider delivered again, without effect",
    ("feed",),
)

Record = Callable[[AsyncConnection], Awaitable[None]]
"""Writes what the entries cause, in the transaction that moves the cursor."""

Prepare = Callable[[Sequence[EntryT]], Awaitable[Record]]
"""Finds out, without an open transaction, what the entries will cause. Its error stops the feed until a later try."""


class NotLeading(Exception):
    """The tail has ended, because of `cause`: another process may follow the feed now."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(type(cause).__name__)
        self.cause = cause


class FeedOutOfOrder(Exception):
    """The positions of the provider's page do not ascend."""


class _NotNow(Exception):
    """No entry is at fault: the database, another service or a provider cannot be used at the moment."""


class _UnappliableEntry(Exception):
    """What one entry causes cannot be recorded, whenever it is tried."""

    def __init__(self, entry: FaultyEntry) -> None:
        super().__init__(f"entry at {entry.position}: {entry.problem}")
        self.entry = entry


class FeedTail(Generic[EntryT]):
    """The tail of one feed, for one term of leadership, which fences each of its commits.

    Args:
        poll_seconds: how soon new entries are noticed.
        progress: called after each page that was applied, or whose failure was recorded.
    """

    def __init__(
        self,
        database: Database,
        term: Term,
        feed: str,
        fetch: Fetch[EntryT],
        prepare: Prepare[EntryT],
        *,
        poll_seconds: float,
        page_size: int,
        log: Any,
        progress: Callable[[], None],
    ) -> None:
        self._database = database
        self._term = term
        self._feed = feed
        self._fetch = fetch
        self._prepare = prepare
        self._poll_seconds = poll_seconds
        self._page_size = page_size
        self._log = log
        self._progress = progress

    async def run(self) -> NoReturn:
        """Apply page after page, for ever: full pages at once, else after `poll_seconds`.

        A page that cannot be fetched or applied, for any reason, is logged, counted, recorded and tried again after a
        pause that doubles up to 30 s, or 3 s when another service or the database cannot be used: a stopped feed must
        not take its service down.

        Raises:
            NotLeading: the term is over, or the database is away.
        """
        backoff = Backoff(max(self._poll_seconds, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        failures = 0
        is_stopped = True  # as the previous leader may have recorded
        while True:
            try:
                more = await self._apply_page()
                if is_stopped:
                    async with self._fenced() as connection:
                        await feed_stops.clear(connection, self._feed)
                    is_stopped = False
                    STOPPED_SECONDS.labels(self._feed).set(0)
                self._progress()
            except NotLeading:
                raise
            except Exception as error:  # the contract above: tried again, never skipped
                is_stopped = True
                pause_seconds = backoff.pause_seconds(failures + 1)
                if isinstance(error, _NotNow):
                    pause_seconds = min(pause_seconds, LONGEST_OUTAGE_PAUSE_SECONDS)
                if await self._skip_or_record_stop(error, pause_seconds):
                    continue
                failures += 1
                await asyncio.sleep(pause_seconds)
                continue
            failures = 0
            if not more:
                await asyncio.sleep(self._poll_seconds)

    async def _apply_page(self) -> bool:
        """Apply the next page. True when there may be more."""
        after = await self._cursor()
        entries = await self._fetch(after, self._page_size)
        position = after.position
        if entries:
            positions = [position, *(entry.position for entry in entries)]
            if any(later <= earlier for earlier, later in pairwise(positions)):
                raise FeedOutOfOrder(self._feed)
            await self._apply(entries, after)
            position = positions[-1]
        POSITION.labels(self._feed).set(position)
        return len(entries) >= self._page_size

    async def _cursor(self) -> FeedCursor:
        try:
            async with self._database.driver() as connection:
                found = await cursor.poll(connection, self._feed)
                return FeedCursor(found.position, found.state)
        except Exception as error:
            if is_away(error):
                raise NotLeading(error) from error
            raise

    async def _apply(self, entries: Sequence[EntryT], after: FeedCursor) -> None:
        """Apply the entries together; if one of them is at fault, one by one up to it.

        Raises:
            _UnappliableEntry: those before it are applied.
        """
        try:
            await self._commit(entries, after)
        except (NotLeading, _NotNow):
            raise
        except Exception as error:
            [first, *others] = entries
            if not others:
                problem = describe("it cannot be applied", error)
                kind = getattr(first, "type", None)
                faulty = FaultyEntry(
                    first.position, kind, problem, None, first.provider_cursor, first.event_id
                )
                raise _UnappliableEntry(faulty) from error
        else:
            ENTRIES.labels(self._feed).inc(len(entries))
            return
        for entry in entries:
            await self._apply([entry], after)
            after = FeedCursor(entry.position, entry.provider_cursor)

    async def _commit(self, entries: Sequence[EntryT], after: FeedCursor) -> None:
        """Commit what the entries cause, but for those applied before, and the move of the cursor."""
        new = await self._not_applied(entries)
        try:
            record = await self._prepare(new) if new else None
        except Exception as error:
            if _is_transient(error):
                raise _NotNow(self._feed) from error
            raise
        async with self._fenced() as connection:
            await self._move(connection, after, entries[-1], new)
            if record is not None:
                await record(connection)
            crash_point(f"feed.{self._feed}.before_commit")
        crash_point(f"feed.{self._feed}.after_commit")

    async def _not_applied(self, entries: Sequence[EntryT]) -> Sequence[EntryT]:
        """The entries without those that were applied already, which the provider delivers again.

        No other process applies entries while this one leads.
        """
        ids = {entry.event_id for entry in entries if entry.event_id is not None}
        if not ids:
            return entries
        async with self._fenced() as connection:
            known = await feed_events.applied(connection, self._feed, ids)
        new: list[EntryT] = []
        for entry in entries:
            if entry.event_id not in known:
                new.append(entry)
            if entry.event_id is not None:
                known.add(entry.event_id)
        REPEATED.labels(self._feed).inc(len(entries) - len(new))
        return new

    async def _move(
        self,
        connection: AsyncConnection,
        expected: FeedCursor,
        last: EntryT | FaultyEntry,
        applied: Sequence[EntryT | FaultyEntry],
    ) -> None:
        await cursor.move(
            connection,
            self._feed,
            expected=expected.position,
            expected_state=expected.provider_cursor,
            to=last.position,
            state=last.provider_cursor,
        )
        positions = {entry.event_id: entry.position for entry in applied if entry.event_id}
        if positions:
            await feed_events.add(connection, self._feed, positions)

    async def _skip_or_record_stop(self, error: Exception, pause_seconds: float) -> bool:
        """Move the cursor past the entry if an operator has decided so: true. Else record the stop: false.

        A stop that cannot be recorded is no progress: the feed's readiness check fails in time.

        Raises:
            NotLeading
        """
        entry = error.entry if isinstance(error, UndecodableEntry | _UnappliableEntry) else None
        cause = error.__cause__ if isinstance(error, _NotNow) and error.__cause__ else error
        try:
            standing = await self._cursor()
            if entry is not None and await self._skip(standing, entry):
                return True
            problem = entry.problem if entry else describe("no page can be applied", cause)
            await self._record_stop(standing.position, entry, problem)
        except NotLeading:
            raise
        except Exception as unrecorded:  # an error of the bookkeeping must not hide the stop
            self._log.warning(
                "feed_stop_not_recorded",
                feed=self._feed,
                error=type(unrecorded.__cause__ or unrecorded).__name__,
                exc_info=None if isinstance(unrecorded, _NotNow) else unrecorded,
            )
            FAILURES.labels(self._feed).inc()
            return False
        self._progress()
        FAILURES.labels(self._feed).inc()
        self._log.warning(
            "feed_stands_still",
            feed=self._feed,
            entry=entry.position if entry else None,
            retry_seconds=pause_seconds,
            cause=type(cause).__name__,
            # An outage is logged at each try, so without the trace. An answer that cannot be used is no outage.
            exc_info=None
            if _is_transient(cause) and not isinstance(cause, ProviderError)
            else error,
        )
        return False

    async def _skip(self, standing: FeedCursor, entry: FaultyEntry) -> bool:
        """Move the cursor past the entry, if an operator has decided so."""
        async with self._fenced() as connection:
            decided = await feed_stops.take_skip(
                connection, self._feed, entry.position, entry.event_id
            )
            if decided is None:
                return False
            await self._move(connection, standing, entry, [entry])
            await feed_stops.clear(connection, self._feed)
        SKIPPED.labels(self._feed).inc()
        self._log.warning(
            "feed_entry_skipped", feed=self._feed, position=entry.position, type=entry.type
        )
        return True

    async def _record_stop(self, position: int, entry: FaultyEntry | None, problem: str) -> None:
        stop = feed_stops.Stop(
            position=position,
            entry_position=entry.position if entry else None,
            entry_type=entry.type if entry else None,
            error=problem,
            outline=entry.outline if entry else None,
            event_id=entry.event_id if entry else None,
        )
        async with self._fenced() as connection:
            seconds = await feed_stops.record(connection, self._feed, stop)
        STOPPED_SECONDS.labels(self._feed).set(seconds)

    @asynccontextmanager
    async def _fenced(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits only while the term lasts."""
        try:
            async with self._database.transaction() as connection:
                await fence(connection, self._term)
                yield connection
        except (cursor.CursorMoved, LeadershipLost) as error:
            raise NotLeading(error) from error
        except Exception as error:
            if _is_transient(error):
                raise _NotNow(self._feed) from error
            raise


def _is_transient(error: BaseException) -> bool:
    """Whether no entry is at fault: the database, another service or a provider cannot be used at the moment."""
    return is_away(error) or (isinstance(error, BanksideError) and error.status >= 500)
