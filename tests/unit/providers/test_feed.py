from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from libs.providers.feed import tail_feed


@dataclass(frozen=True)
class Entry:
    position: int


@dataclass
class Memory:
    """A journal in memory that fails as often as it is told to, before anything is applied."""

    at: int = 0
    failures: int = 0
    applied: list[int] = field(default_factory=list)
    moves: list[tuple[int, int]] = field(default_factory=list)

    async def position(self) -> int:
        return self.at

    async def apply(self, entries: Sequence[Entry], moved_from: int, moved_to: int) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        assert moved_from == self.at
        self.applied += [entry.position for entry in entries]
        self.moves.append((moved_from, moved_to))
        self.at = moved_to


async def follow(journal: Memory, feed: list[Entry], until: int) -> None:
    async def fetch(after: int, limit: int) -> list[Entry]:
        return [entry for entry in feed if entry.position > after][:limit]

    tail = asyncio.create_task(
        tail_feed(
            "test", fetch, journal, poll_seconds=0.001, page_size=2, log=structlog.get_logger()
        )
    )
    async with asyncio.timeout(5):
        while journal.at < until:
            await asyncio.sleep(0)
    tail.cancel()
    await asyncio.wait({tail})


async def test_a_feed_is_applied_page_by_page_in_order() -> None:
    journal = Memory()

    await follow(journal, [Entry(n) for n in (1, 2, 3, 5, 8)], until=8)

    assert journal.applied == [1, 2, 3, 5, 8]
    assert journal.moves == [(0, 2), (2, 5), (5, 8)]


async def test_a_page_that_failed_is_applied_later_not_skipped() -> None:
    journal = Memory(failures=2)

    await follow(journal, [Entry(1), Entry(2), Entry(3)], until=3)

    assert journal.applied == [1, 2, 3]


async def test_new_entries_are_found_after_the_end_was_reached() -> None:
    journal = Memory()
    feed = [Entry(1)]

    await follow(journal, feed, until=1)
    feed.append(Entry(2))
    await follow(journal, feed, until=2)

    assert journal.applied == [1, 2]


async def test_a_feed_that_goes_backwards_is_not_applied() -> None:
    journal = Memory()
    pages = [[Entry(2), Entry(1)], [Entry(1), Entry(2)]]

    async def fetch(_: int, __: int) -> list[Entry]:
        return pages.pop(0) if pages else []

    tail = asyncio.create_task(
        tail_feed(
            "test", fetch, journal, poll_seconds=0.001, page_size=10, log=structlog.get_logger()
        )
    )
    async with asyncio.timeout(5):
        while journal.at < 2:
            await asyncio.sleep(0.001)
    tail.cancel()
    await asyncio.wait({tail})

    assert journal.applied == [1, 2]
