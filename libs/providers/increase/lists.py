"""Lists of Increase: pages that are linked by cursors, each of at most 100 rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from increase import AsyncIncrease, Omit, omit

from libs.contracts.errors import ProviderError
from libs.gathering import gather_or_cancel
from libs.providers.errors import ProviderRefusal
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.refusals import NOT_FOUND

LARGEST_PAGE = 100

RowT = TypeVar("RowT")
RowT_co = TypeVar("RowT_co", covariant=True)


class Listed(Protocol[RowT_co]):
    """A page of a list of the SDK's."""

    @property
    def data(self) -> Sequence[RowT_co]: ...

    @property
    def next_cursor(self) -> str | None: ...


ListCall = Callable[[AsyncIncrease, "str | Omit"], Awaitable[Listed[RowT]]]
"""The SDK's list, from the cursor that it is given."""


@dataclass(frozen=True, slots=True)
class CursorPage(Generic[RowT]):
    """`next_cursor`: where the next page begins; None: this was the last."""

    rows: Sequence[RowT]
    next_cursor: str | None


async def read_page(
    client: IncreaseClient,
    operation: str,
    call: ListCall[RowT],
    cursor: str | None,
    *,
    deadline: float,
) -> CursorPage[RowT]:
    """Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer."""
    begins = omit if cursor is None else cursor
    try:
        page = await client.read(operation, lambda sdk: call(sdk, begins), deadline=deadline)
    except ProviderRefusal as error:
        raise ProviderError from error
    if page.next_cursor is not None and page.next_cursor == cursor:
        raise ProviderError  # a list that does not advance would be read without end
    return CursorPage(page.data, page.next_cursor)


async def retrieve_each(
    client: IncreaseClient,
    operation: str,
    call: Callable[[AsyncIncrease, str], Awaitable[RowT]],
    ids: Iterable[str],
    *,
    deadline: float,
) -> dict[str, RowT]:
    """The objects with these ids, as many at once as the client's `retrievals` allow. Ids that Increase does not know
    are left out.

    Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
    """
    found: dict[str, RowT] = {}

    async def retrieve(one: str) -> None:
        async with client.retrievals:
            try:
                found[one] = await client.read(
                    operation, lambda sdk: call(sdk, one), deadline=deadline
                )
            except ProviderRefusal as refusal:
                if refusal.code != NOT_FOUND:
                    raise ProviderError from refusal

    await gather_or_cancel(map(retrieve, dict.fromkeys(ids)), name=operation)
    return found


async def read_pages(
    client: IncreaseClient,
    operation: str,
    call: ListCall[RowT],
    *,
    deadline: float,
    most_pages: int,
    too_many: str | None = None,
    begins: str | None = None,
) -> AsyncIterator[CursorPage[RowT]]:
    """The pages of a list from its beginning.

    Args:
        begins: the cursor of the first page, of a list that was read in part.
        too_many: the detail of the error when the list has more pages.

    Raises:
        ProviderTimeout, Unavailable: there is no usable answer.
        ProviderError: likewise, or the list has more pages.
    """
    cursor = begins
    for _ in range(most_pages):
        page = await read_page(client, operation, call, cursor, deadline=deadline)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
    raise ProviderError(too_many)
