from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from libs.providers.feed import (
    FaultyEntry,
    Fetch,
    UndecodableEntry,
    decode_entries,
    tail_feed,
)
from tests.support.pace import pace


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
    stops: list[tuple[int | None, str]] = field(default_factory=list)
    to_skip: set[int] = field(default_factory=set)
    moved_on: int = 0

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

    async def stand_still(self, position: int, entry: FaultyEntry | None, problem: str) -> float:
        assert position == self.at
        self.stops.append((entry.position if entry else None, problem))
        return 0.0

    async def skip(self, position: int, entry: FaultyEntry) -> bool:
        if entry.position not in self.to_skip:
            return False
        self.at = entry.position
        return True

    async def move_on(self) -> None:
        self.moved_on += 1


async def follow(journal: Memory, feed: list[Entry], until: int) -> None:
    async def fetch(after: int, limit: int) -> list[Entry]:
        return [entry for entry in feed if entry.position > after][:limit]

    tail = asyncio.create_task(
        tail_feed(
            "test", fetch, journal, poll_seconds=0.001, page_size=2, log=structlog.get_logger()
        )
    )
    async with asyncio.timeout(5 * pace()):
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
    async with asyncio.timeout(5 * pace()):
        while journal.at < 2:
            await asyncio.sleep(0.001)
    tail.cancel()
    await asyncio.wait({tail})

    assert journal.applied == [1, 2]


# An entry at fault


@dataclass(frozen=True)
class Read:
    position: int


def read(item: dict[str, Any]) -> Read:
    if item.get("name") != "good":
        raise ValueError(f"what is this: {item}")
    return Read(item["position"])


def test_entries_are_decoded_up_to_the_first_that_cannot_be() -> None:
    items = [{"position": n, "name": "bad" if n == 7 else "good"} for n in (5, 6, 7, 8)]

    decoded = decode_entries(items, 4, read)

    assert [entry.position for entry in decoded] == [5, 6]


@pytest.mark.parametrize(
    ("item", "position", "kind"),
    [
        ({"position": 9, "type": "wire.sent", "name": "Ada"}, 9, "wire.sent"),
        ({"position": "9", "type": 3}, 5, None),
        ({"position": 4, "type": "old"}, 5, "old"),
        ({"position": True}, 5, None),
        ([1], 5, None),
        (None, 5, None),
    ],
)
def test_an_entry_at_fault_has_its_position_and_type_and_none_of_its_values(
    item: Any, position: int, kind: str | None
) -> None:
    with pytest.raises(UndecodableEntry) as raised:
        decode_entries([item, {"position": 10, "name": "good"}], 4, read)

    faulty = raised.value.entry
    assert (faulty.position, faulty.type) == (position, kind)
    assert "Ada" not in faulty.problem + str(faulty.outline)
    assert faulty.problem.startswith("it cannot be decoded")


class Refusing(Memory):
    """Cannot apply certain entries."""

    faulty: frozenset[int] = frozenset()

    async def apply(self, entries: Sequence[Entry], moved_from: int, moved_to: int) -> None:
        if self.faulty & {entry.position for entry in entries}:
            raise AssertionError("an entry contradicts what is known")
        await super().apply(entries, moved_from, moved_to)


async def test_entries_before_one_that_cannot_be_applied_are_applied_and_the_rest_waits() -> None:
    journal = Refusing()
    journal.faulty = frozenset({4})

    await follow(journal, [Entry(n) for n in (1, 2, 3, 4, 5)], until=3)
    await follow_until_stopped(journal, [Entry(n) for n in (1, 2, 3, 4, 5)])

    assert journal.applied == [1, 2, 3]
    assert {position for position, _ in journal.stops} == {4}


async def test_an_entry_is_skipped_when_an_operator_says_so_and_no_other() -> None:
    journal = Refusing()
    journal.faulty, journal.to_skip = frozenset({2, 4}), {2}

    await follow_until_stopped(journal, [Entry(n) for n in (1, 2, 3, 4, 5)])

    assert journal.applied == [1, 3]
    assert {position for position, _ in journal.stops} == {4}


async def test_a_page_that_no_entry_is_to_blame_for_offers_none_to_be_skipped() -> None:
    journal = Memory(to_skip={1})

    async def fetch(_: int, __: int) -> list[Entry]:
        raise ConnectionError

    await tail_until_stopped(journal, fetch)

    assert {position for position, _ in journal.stops} == {None}
    assert journal.at == 0


async def test_a_stop_is_cleared_once_the_feed_moves() -> None:
    journal = Memory(failures=3)

    await follow(journal, [Entry(1), Entry(2), Entry(3)], until=3)

    assert journal.stops
    assert journal.moved_on == 1


async def follow_until_stopped(journal: Memory, feed: list[Entry]) -> None:
    async def fetch(after: int, limit: int) -> list[Entry]:
        return [entry for entry in feed if entry.position > after][:limit]

    await tail_until_stopped(journal, fetch)


async def tail_until_stopped(journal: Memory, fetch: Fetch[Entry]) -> None:
    tail = asyncio.create_task(
        tail_feed(
            "test", fetch, journal, poll_seconds=0.001, page_size=5, log=structlog.get_logger()
        )
    )
    async with asyncio.timeout(5 * pace()):
        while not journal.stops:
            await asyncio.sleep(0.001)
    tail.cancel()
    await asyncio.wait({tail})
