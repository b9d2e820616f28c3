"""A provider's feed as a part of a service: one leader tails it; its cursor moves together with what the entries cause.

    async with run_feed(process, database, "financial", fetch, prepare, poll_seconds=1):
        ...

Readiness check `feed:<name>`: in the last 90 s this process applied a page, or recorded that it could not, or saw
another process hold the lease. The check fails while no process leads, and when the tail hangs. It does not fail while
the provider is away or an entry is at fault: reads and commands go on, and `bankside feeds list` and the metric
`bankside_feed_stopped_seconds` show the stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

from libs.contracts.principal import Principal
from libs.contracts.reconciliation import FeedPosition, FeedPositions, ListFeedPositions
from libs.contracts.result import Result
from libs.handling.feed_tail import STOPPED_SECONDS, FeedTail, NotLeading, Prepare
from libs.handling.outage_log import OutageLog
from libs.handling.queries import QueryHandler
from libs.persistence import cursor
from libs.persistence.engine import Database
from libs.persistence.leadership import LeadershipLost, leadership
from libs.providers.feed_entries import EntryT, Fetch
from libs.runtime.health import Progress
from libs.runtime.process import Process

PAGE_SIZE = 100
PAUSE_SECONDS = 1.0
PROGRESS_SECONDS = 90.0
"""The longest pause after a failure is 30 s; a page is fetched within 10 s, and applied by statements that end after
15 s.
"""


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
    not_leading = OutageLog("feeds", "feed_not_leading", (LeadershipLost,))

    async def follow() -> NoReturn:
        while True:
            try:
                async with leadership(database, f"feed:{feed}", standing_by=progress.made) as term:
                    process.log.info("feed_leading", feed=feed, term=term.number)
                    tail = FeedTail(
                        database,
                        term,
                        feed,
                        fetch,
                        prepare,
                        poll_seconds=poll_seconds,
                        page_size=page_size,
                        log=process.log,
                        progress=progress.made,
                    )
                    await tail.run()
            except NotLeading as error:
                not_leading.note(error.cause, feed=feed)
            except Exception as error:  # an election follows any failure
                not_leading.note(error, feed=feed)
            STOPPED_SECONDS.labels(feed).set(0)
            await asyncio.sleep(PAUSE_SECONDS)

    async with process.background(f"feed:{feed}", follow()):
        yield


def feed_positions(database: Database) -> QueryHandler:
    """The handler of `list_feed_positions`: how far the service applied each feed. One without entries is left out."""

    async def handle(_: Principal, __: ListFeedPositions, ___: float) -> Result:
        async with database.transaction() as connection:
            positions = await cursor.positions(connection)
        return Result(
            data=FeedPositions(
                feeds=[
                    FeedPosition(feed=feed, position=found.position, state=found.state)
                    for feed, found in positions.items()
                ]
            )
        )

    return handle
