"""Our pages out of pages of any size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.contracts.errors import ProviderError
from services.ledger_read.adapters.sandbox.paging import window
from services.ledger_read.models import Page


@dataclass(frozen=True)
class Answered:
    rows: Sequence[int]
    page: int
    limit: int
    total: int


@dataclass
class Pages:
    """A list whose pages are of the size that `size` makes of the one asked for."""

    rows: list[int]
    size: Callable[[int], int]
    asked: list[tuple[int, int]] = field(default_factory=list)
    grows: bool = False

    async def ask(self, page: int, limit: int) -> Answered:
        self.asked.append((page, limit))
        limit = self.size(limit)
        shown = self.rows[(page - 1) * limit : page * limit]
        answered = Answered(shown, page, limit, len(self.rows))
        if self.grows:
            self.rows.insert(0, 1000 + len(self.asked))
        return answered

    def window(self, page: int, limit: int) -> Page[int]:
        return asyncio.run(window("test", self.ask, lambda row: row, page=page, limit=limit))


@given(
    count=st.integers(0, 130),
    page=st.integers(1, 60),
    limit=st.integers(1, 100),
    smallest=st.integers(1, 40),
    more=st.integers(0, 100),
)
def test_a_page_is_exactly_its_part_of_the_list(
    count: int, page: int, limit: int, smallest: int, more: int
) -> None:
    rows = list(range(count))
    pages = Pages(rows, lambda asked: min(max(asked, smallest), smallest + more))

    found = pages.window(page, limit)

    assert found.rows == rows[(page - 1) * limit : page * limit]
    assert found.total == count
    assert len(pages.asked) <= limit // smallest + 4


def test_a_provider_that_does_as_it_is_told_is_asked_once() -> None:
    pages = Pages(list(range(95)), lambda asked: asked)

    last, beyond = pages.window(10, 10), pages.window(11, 10)

    assert (last.rows, beyond.rows) == ([90, 91, 92, 93, 94], [])
    assert pages.asked == [(10, 10), (11, 10)]


def test_beyond_the_end_nothing_more_is_asked_whatever_the_size_of_pages() -> None:
    pages = Pages(list(range(60)), lambda asked: min(asked, 20))

    beyond = pages.window(1_000_000_000, 100)

    assert (beyond.rows, beyond.total) == ([], 60)
    assert pages.asked == [(1_000_000_000, 100)]


def test_smaller_pages_are_put_together_without_asking_past_the_end() -> None:
    pages = Pages(list(range(60)), lambda asked: min(asked, 20))

    found = pages.window(1, 100)

    assert found.rows == list(range(60))
    assert pages.asked == [(1, 100), (2, 20), (3, 20)]


def test_what_comes_in_between_moves_rows_and_neither_repeats_nor_hides_one() -> None:
    pages = Pages(list(range(60)), lambda asked: min(asked, 20), grows=True)

    found = pages.window(1, 50)

    assert found.rows == list(range(50))


@pytest.mark.parametrize(
    "answer",
    [
        lambda page, limit: Answered([1], page + 1, limit, 11),
        lambda page, limit: Answered([1, 2, 3], page, 2, 33),
        lambda page, limit: Answered([1], page, limit, 12),
        lambda page, limit: Answered(list(range(limit - 1)), page, limit - 1, 1_000_000),
        lambda page, limit: Answered([1] * 5, page, 5, 1_000_000),
    ],
    ids=["another page", "too many rows", "too few rows", "ever smaller", "always the same"],
)
def test_pages_that_contradict_themselves_are_an_error(
    answer: Callable[[int, int], Answered],
) -> None:
    async def ask(page: int, limit: int) -> Answered:
        return answer(page, limit)

    with pytest.raises(ProviderError):
        asyncio.run(window("test", ask, lambda row: row, page=2, limit=10))
