"""A provider's feed as a part of a service: one leader tails it; its cursor moves together with what the entries cause.

async with run_feed(process, database, "financial", fetch, prepare, poll_seconds=1):
    ...

Readiness check `feed:<name>`: in the last 90 s this process fetched and applied a page, or failed to and recorded that,
or saw another process hold the lease. It fails while no process leads and when the tail hangs. It does not fail while
the provider is away or an entry is at fault: reads and commands need not stop for that, and `feed_stop`,
`bankside_feed_stopped_seconds` and `bankside feeds list` tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, NoReturn

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.errors import BanksideError
from libs.contracts.principal import Principal
from libs.contracts.reconciliation import FeedPosition, FeedPositions, ListFeedPositions
from libs.contracts.result import Result
from libs.handling.queries import QueryHandler
from libs.persistence import cursor, feed_stops
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.leadership import LeadershipLost, Term, fence, leadership
from libs.providers.feed import (
    STOPPED_SECONDS,
    EntryT,
    FaultyEntry,
    Fetch,
    NotLeading,
    NotNow,
    tail_feed,
)
from libs.runtime.crash import crash_point
from libs.runtime.health import Progress
from libs.runtime.process import Process

PAGE_SIZE = 100
PAUSE_SECONDS = 1.0
PROGRESS_SECONDS = 90.0
"""The longest pause after a failure is 30 s; a page is fetched within 10 s, and applied by statements that end after
15 s.
"""

Record = Callable[[AsyncConnection], Awaitable[None]]
"""Writes what the entries cause, in the transaction that moves the cursor."""

Prepare = Callable[[Sequence[EntryT]], Awaitable[Record]]
"""Finds out, with no transaction open, what the entries will cause. What it raises stops the feed until a later try."""


@asynccontextmanager
async def run_feed(
    process: Process,
    database: Database,
    feed: str,
    fetch: Fetch[EntryT],
    prepare: Prepare[EntryT],
    *,
    poll_seconds: float,
    page_size: int = PAGE_SIZE,
) -> AsyncIterator[None]:
    """Tail `feed` beside the body, whenever this process is its leader.

    Every entry has exactly one effect, also after a crash at any moment: crash points `feed.<feed>.before_commit` and
    `feed.<feed>.after_commit` stand on either side of the only commit.
    """
    progress = Progress(PROGRESS_SECONDS)
    process.readiness.add(f"feed:{feed}", progress.check)

    async def follow() -> NoReturn:
        while True:
            try:
                async with leadership(database, f"feed:{feed}", standing_by=progress.made) as term:
                    process.log.info("feed_leading", feed=feed, term=term.number)
                    await tail_feed(
                        feed,
                        fetch,
                        _CursorJournal(database, term, feed, prepare),
                        poll_seconds=poll_seconds,
                        page_size=page_size,
                        log=process.log,
                        progress=progress.made,
                    )
            except Exception as error:  # an election follows any failure
                process.log.warning("feed_not_leading", feed=feed, exc_info=error)
            STOPPED_SECONDS.labels(feed).set(0)
            await asyncio.sleep(PAUSE_SECONDS)

    async with process.background(f"feed:{feed}", follow()):
        yield


class _CursorJournal(Generic[EntryT]):
    """The position in the service's database. Each write is fenced by the leader's term."""

    def __init__(
        self,
        database: Database,
        term: Term,
        feed: str,
        prepare: Prepare[EntryT],
    ) -> None:
        self._database = database
        self._term = term
        self._feed = feed
        self._prepare = prepare

    async def position(self) -> int:
        try:
            async with self._database.autocommit() as connection:
                return await cursor.read(connection, self._feed)
        except Exception as error:
            if is_away(error):
                raise NotLeading(self._feed) from error
            raise

    async def apply(self, entries: Sequence[EntryT], moved_from: int, moved_to: int) -> None:
        try:
            record = await self._prepare(entries)
        except Exception as error:
            if _passes_by_itself(error):
                raise NotNow(self._feed) from error
            raise
        async with self._fenced() as connection:
            await cursor.move(connection, self._feed, expected=moved_from, to=moved_to)
            await record(connection)
            crash_point(f"feed.{self._feed}.before_commit")
        crash_point(f"feed.{self._feed}.after_commit")

    async def stand_still(self, position: int, entry: FaultyEntry | None, problem: str) -> float:
        stop = feed_stops.Stop(
            position=position,
            entry_position=entry.position if entry else None,
            entry_type=entry.type if entry else None,
            error=problem,
            outline=entry.outline if entry else None,
        )
        async with self._fenced() as connection:
            return await feed_stops.record(connection, self._feed, stop)

    async def skip(self, position: int, entry: FaultyEntry) -> bool:
        async with self._fenced() as connection:
            if await feed_stops.take_skip(connection, self._feed, entry.position) is None:
                return False
            await cursor.move(connection, self._feed, expected=position, to=entry.position)
            await feed_stops.clear(connection, self._feed)
        return True

    async def move_on(self) -> None:
        async with self._fenced() as connection:
            await feed_stops.clear(connection, self._feed)

    @asynccontextmanager
    async def _fenced(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits only while the term lasts."""
        try:
            async with self._database.transaction() as connection:
                await fence(connection, self._term)
                yield connection
        except (cursor.CursorMoved, LeadershipLost) as error:
            raise NotLeading(self._feed) from error
        except Exception as error:
            if _passes_by_itself(error):
                raise NotNow(self._feed) from error
            raise


def _passes_by_itself(error: Exception) -> bool:
    """Whether no entry is at fault: the database, another service or a provider cannot be used now."""
    return is_away(error) or (isinstance(error, BanksideError) and error.status >= 500)


def feed_positions(database: Database) -> QueryHandler:
    """The handler of `list_feed_positions`: how far the service applied each feed. One without entries is left out."""

    async def handle(_: Principal, __: ListFeedPositions, ___: float) -> Result:
        async with database.transaction() as connection:
            positions = await cursor.positions(connection)
        return Result(
            data=FeedPositions(
                feeds=[
                    FeedPosition(feed=feed, position=position)
                    for feed, position in positions.items()
                ]
            )
        )

    return handle
