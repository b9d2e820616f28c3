from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from libs.persistence.engine import Database
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from services.reconciliation.handlers.feeds import FOLLOWED, FeedComparison
from services.reconciliation.models import Difference
from tests.integration.tables import execute
from tests.support.pace import pace

pytestmark = pytest.mark.asyncio(loop_scope="session")

FEED = "payments/core"


class FakeFeeds:
    """See `ports.Feeds`: every feed is applied to the end but the one that a test looks at."""

    def __init__(self, applied: int, newest: int) -> None:
        self.position = applied
        self.latest = newest

    async def applied(self, deadline: float) -> Mapping[str, FeedCursor]:
        others = dict.fromkeys(FOLLOWED, FeedCursor(self.latest))
        return others | {FEED: FeedCursor(self.position)}

    async def newest(self, role: Role, applied: FeedCursor, deadline: float) -> int:
        return self.latest


async def differing(database: Database, feeds: FakeFeeds) -> list[Difference]:
    comparison = FeedComparison(database, feeds, still_seconds=300)
    found = await comparison.look(list(FOLLOWED), time.time() + 10 * pace())
    return [one for finding in found.values() if isinstance(finding, list) for one in finding]


async def kinds(database: Database, feeds: FakeFeeds) -> list[str]:
    return [one.kind for one in await differing(database, feeds)]


async def pass_time(database: Database) -> None:
    await execute(database, "UPDATE feed_watch SET since = since - interval '301 s'")


async def test_feeds_that_are_applied_to_the_end_are_no_difference(database: Database) -> None:
    feeds = FakeFeeds(7, 7)

    assert await kinds(database, feeds) == []
    await pass_time(database)
    assert await kinds(database, feeds) == []


async def test_a_feed_that_is_behind_and_does_not_move_stands_still(database: Database) -> None:
    feeds = FakeFeeds(5, 7)

    first = await kinds(database, feeds)
    await pass_time(database)
    later = await kinds(database, feeds)
    feeds.position = 6
    moved = await kinds(database, feeds)

    assert (first, later, moved) == ([], ["feed_stands_still"], [])


async def test_a_feed_that_was_at_its_end_for_long_does_not_stand_still_when_news_come(
    database: Database,
) -> None:
    await kinds(database, FakeFeeds(7, 7))
    await pass_time(database)

    assert await kinds(database, FakeFeeds(7, 8)) == []


async def test_a_feed_beyond_the_newest_entry_says_that_the_provider_went_back(
    database: Database,
) -> None:
    assert await kinds(database, FakeFeeds(8, 7)) == ["feed_went_back"]


async def test_a_feed_that_stands_still_is_the_same_difference_while_entries_arrive(
    database: Database,
) -> None:
    feeds = FakeFeeds(5, 7)
    await kinds(database, feeds)
    await pass_time(database)

    [first] = await differing(database, feeds)
    feeds.latest = 9
    [second] = await differing(database, feeds)

    assert first.fingerprint == second.fingerprint
    assert second.theirs == {"newest": 9}


async def test_a_live_feed_that_went_back_is_the_same_difference_at_every_look(
    database: Database,
) -> None:
    feeds = FakeFeeds(80, 7)

    [first] = await differing(database, feeds)
    feeds.latest = 9
    [second] = await differing(database, feeds)

    assert (first.kind, second.kind) == ("feed_went_back", "feed_went_back")
    assert first.fingerprint == second.fingerprint


async def test_a_feed_that_was_seen_before_the_clock_was_set_back_is_seen_to_stand_still(
    database: Database,
) -> None:
    feeds = FakeFeeds(5, 7)
    await kinds(database, feeds)
    await execute(database, "UPDATE feed_watch SET since = since + interval '1 day'")

    first = await kinds(database, feeds)
    await pass_time(database)
    later = await kinds(database, feeds)

    assert (first, later) == ([], ["feed_stands_still"])
