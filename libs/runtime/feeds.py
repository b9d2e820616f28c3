"""A provider's feed as a part of a service: one leader tails it; its cursor moves together with what the entries cause.

async with run_feed(process, database, "financial", fetch, prepare, poll_seconds=1):
    ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, NoReturn

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.persistence import cursor
from libs.persistence.engine import Database
from libs.providers.feed import EntryT, Fetch, NotLeading, tail_feed
from libs.runtime.crash import crash_point
from libs.runtime.process import Process

PAGE_SIZE = 100
PAUSE_SECONDS = 1.0

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

    Every entry has exactly one effect, whatever dies when: crash points `feed.<feed>.before_commit` and
    `feed.<feed>.after_commit` stand on either side of the only commit.
    """

    async def follow() -> NoReturn:
        while True:
            try:
                async with cursor.leadership(database, f"feed:{feed}") as leading:
                    process.log.info("feed_leading", feed=feed)
                    await tail_feed(
                        feed,
                        fetch,
                        _CursorJournal(database, leading, feed, prepare),
                        poll_seconds=poll_seconds,
                        page_size=page_size,
                        log=process.log,
                    )
            except (
                Exception
            ) as error:  # the lock's connection failed in some way: stand for election again
                process.log.warning("feed_not_leading", feed=feed, exc_info=error)
            await asyncio.sleep(PAUSE_SECONDS)

    async with process.background(f"feed:{feed}", follow()):
        yield


class _CursorJournal(Generic[EntryT]):
    """The position in the service's database. Read over the connection that holds the lock: lost with it."""

    def __init__(
        self,
        database: Database,
        leading: AsyncConnection,
        feed: str,
        prepare: Prepare[EntryT],
    ) -> None:
        self._database = database
        self._leading = leading
        self._feed = feed
        self._prepare = prepare

    async def position(self) -> int:
        try:
            return await cursor.read(self._leading, self._feed)
        except (SQLAlchemyError, OSError) as error:
            raise NotLeading(self._feed) from error

    async def apply(self, entries: Sequence[EntryT], moved_from: int, moved_to: int) -> None:
        record = await self._prepare(entries)
        try:
            async with self._database.transaction() as connection:
                await cursor.move(connection, self._feed, expected=moved_from, to=moved_to)
                await record(connection)
                crash_point(f"feed.{self._feed}.before_commit")
        except cursor.CursorMoved as error:
            raise NotLeading(self._feed) from error
        crash_point(f"feed.{self._feed}.after_commit")
