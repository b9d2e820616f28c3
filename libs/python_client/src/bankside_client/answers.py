"""What calls return: an answer, or a page whose iterator goes on to the following ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """A success.

    Args:
        data: what was asked for.
        message: what was done, as a sentence.
        replayed: this is the stored answer of an earlier request with the same Idempotency-Key.
        pagination: of a page: `limit`, `total`, and `page` or `offset`.
        as_of_date: of deposit locations: the day of the load.
    """

    data: T
    message: str
    request_id: str
    replayed: bool = False
    pagination: dict[str, Any] | None = None
    as_of_date: date | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Answer[list[T]], Generic[T]):
    """A list. `data` is this page; iterating also asks for the pages that follow, each when it is needed.

    Pages are newest first: an item that is added meanwhile moves the others, so that one may come twice. Events are
    oldest first, and the iteration ends with the latest one.

    A list that a `state` or `status` filters is read to its end, into memory, before the first item comes: items that
    the caller takes out of the filter, as by approving a wire, would move others to pages that were read already.
    Items that leave the filter otherwise while the pages are read can still make it miss one: for all of them, list
    without the filter, or follow the events. Bound the list by `start_date` and `end_date`, where the operation has
    them.
    """

    following: Callable[[], Page[T]] | None
    is_read_ahead: bool = False

    def __iter__(self) -> Iterator[T]:
        pages = self._pages()
        for page in list(pages) if self.is_read_ahead else pages:
            yield from page.data

    def _pages(self) -> Iterator[Page[T]]:
        page = self
        while True:
            yield page
            if page.following is None:
                return
            page = page.following()


@dataclass(frozen=True, kw_only=True)
class AsyncPage(Answer[list[T]], Generic[T]):
    """As `Page`, for `async for`."""

    following: Callable[[], Awaitable[AsyncPage[T]]] | None
    is_read_ahead: bool = False

    async def __aiter__(self) -> AsyncIterator[T]:
        if self.is_read_ahead:
            for page in [page async for page in self._pages()]:
                for item in page.data:
                    yield item
            return
        async for page in self._pages():
            for item in page.data:
                yield item

    async def _pages(self) -> AsyncIterator[AsyncPage[T]]:
        page = self
        while True:
            yield page
            if page.following is None:
                return
            page = await page.following()
