"""The provider's pages, made into ours: all of a list that it pages by cursor, or a window of one that it pages by
number, in pages of any size.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Protocol, TypeVar

import structlog

from libs.contracts.errors import ProviderError
from services.ledger_read.adapters.sandbox.financial_answers import CursorAnswer
from services.ledger_read.models import Page

MOST_ROWS = 10_000
"""Rows of a list without pages. A longer list is refused: a list must not be cut in silence."""
SIZES_TRIED = 3

_log = structlog.get_logger("financial")

RowT_co = TypeVar("RowT_co", covariant=True)


class NumberedPage(Protocol[RowT_co]):
    @property
    def rows(self) -> Sequence[RowT_co]: ...
    @property
    def page(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def total(self) -> int: ...


CursorT = TypeVar("CursorT", bound=CursorAnswer)
RowT = TypeVar("RowT")


async def every_page(
    operation: str,
    ask: Callable[[Sequence[tuple[str, str]]], Awaitable[CursorT]],
    params: Sequence[tuple[str, str]],
) -> list[CursorT]:
    """The pages of a list to its end, at least one. A page without rows that promises another one counts as endless.

    Raises:
        ProviderError: the list is longer than `MOST_ROWS`, or its pages have no end.
    """
    pages: list[CursorT] = []
    cursors: set[str] = set()
    page_params, count = params, 0
    while True:
        page = await ask(page_params)
        pages.append(page)
        count += len(page.rows)
        if count > MOST_ROWS:
            _log.error("provider_list_too_long", operation=operation)
            raise ProviderError(f"The list is longer than {MOST_ROWS:,} rows.")
        if page.next_cursor is None:
            return pages
        if not page.rows or page.next_cursor in cursors:
            raise broken_pages(operation, "without end")
        cursors.add(page.next_cursor)
        page_params = [*params, ("cursor", page.next_cursor)]


async def window(
    operation: str,
    ask: Callable[[int, int], Awaitable[NumberedPage[RowT]]],
    key: Callable[[RowT], Hashable],
    *,
    page: int,
    limit: int,
) -> Page[RowT]:
    """Our page of a list that only grows, and at its top.

    `ask(page, limit)` asks the provider, which may answer with pages of another size; then its pages that cover ours
    are read, one after the other. What is added at the top meanwhile moves rows down, so that one may come twice (told
    apart by `key`), and none is missed.

    Raises:
        ProviderError: the answers contradict what was asked, or one another.
    """
    offset = (page - 1) * limit
    number, answer = await _first(operation, ask, offset, page, limit)
    size, total = answer.limit, answer.total
    if offset >= total:
        return Page([], total)
    rows = {key(row): row for row in answer.rows[offset % size :]}
    pages_left = limit // size + 2
    while len(rows) < limit and number * size < answer.total:
        if pages_left == 0:
            raise broken_pages(operation, "repeating themselves")
        number, pages_left = number + 1, pages_left - 1
        answer = await _ask(operation, ask, number, size)
        if answer.limit != size:
            raise broken_pages(operation, "of changing size")
        for row in answer.rows:
            rows.setdefault(key(row), row)
    return Page(list(rows.values())[:limit], total)


async def _first(
    operation: str,
    ask: Callable[[int, int], Awaitable[NumberedPage[RowT]]],
    offset: int,
    page: int,
    limit: int,
) -> tuple[int, NumberedPage[RowT]]:
    """The provider's page that holds the row at `offset`, and its number; any page when there is no such row."""
    number, size = page, limit
    for _ in range(SIZES_TRIED):
        answer = await _ask(operation, ask, number, size)
        holds_it = offset // answer.limit + 1
        if number == holds_it or offset >= answer.total:
            return number, answer
        number, size = holds_it, answer.limit
    raise broken_pages(operation, "of changing size")


async def _ask(
    operation: str,
    ask: Callable[[int, int], Awaitable[NumberedPage[RowT]]],
    number: int,
    size: int,
) -> NumberedPage[RowT]:
    answer = await ask(number, size)
    if answer.page != number:
        raise broken_pages(operation, "not the ones asked for")
    left = max(0, answer.total - (number - 1) * answer.limit)
    if len(answer.rows) > answer.limit:
        raise broken_pages(operation, "larger than they say")
    if len(answer.rows) < min(left, answer.limit):
        raise broken_pages(operation, "shorter than their total says")
    return answer


def broken_pages(operation: str, how: str) -> ProviderError:
    _log.error("provider_pages_broken", operation=operation, how=how)
    return ProviderError()
