"""The sums of postings, brought up to the provider's newest posting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from libs.persistence import cursor
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.cursor import CursorMoved
from libs.persistence.engine import Database
from services.reconciliation.ports import Financial
from services.reconciliation.repository import postings
from services.reconciliation.repository.postings import Posted, WirePostings

_Sums = TypeVar("_Sums")


class Added(NamedTuple):
    """Postings that were added.

    Args:
        postings: how many.
        up_to: the position of the last posting that is in the sums.
    """

    postings: int
    up_to: int


class Books:
    """The sums of the financial provider's postings, kept in our database and brought up to date page by page.

    Args:
        page_size: postings in a page of the provider's.
    """

    def __init__(self, database: Database, financial: Financial, *, page_size: int) -> None:
        self._database = database
        self._financial = financial
        self._page_size = page_size

    async def add_page(self, deadline: float) -> Added:
        """Add the provider's next postings, one page at most."""
        while True:
            async with self._database.transaction() as connection:
                position = await postings.position(connection)
            found = await self._financial.postings_after(position, deadline)
            if not found:
                return Added(0, position)
            try:
                async with self._database.transaction() as connection:
                    await postings.add(connection, position, found)
            except CursorMoved:
                continue  # another process has added them, or an operator has all read again
            return Added(len(found), found[-1].position)

    async def posted(self, account_ids: Sequence[str]) -> dict[str, Posted]:
        async with self._database.transaction() as connection:
            return await postings.posted(connection, account_ids)

    async def posted_by_now(
        self, account_ids: Sequence[str], deadline: float
    ) -> tuple[dict[str, Posted], int]:
        """Of all postings that there are by now, with the position of the last one."""
        return await self._by_now(
            lambda connection: postings.posted(connection, account_ids), deadline
        )

    async def page_of_posted(self, after: str | None, limit: int) -> list[Posted]:
        async with self._database.transaction() as connection:
            return await postings.page_of_posted(connection, after or "", limit)

    async def of_wires(
        self, ids: Sequence[str], return_ids: Sequence[str], deadline: float
    ) -> tuple[dict[str, WirePostings], dict[str, WirePostings]]:
        """Debits of wires by their ids, and credits of returns by theirs, of all postings that there are by now."""

        async def read(
            connection: AsyncConnection,
        ) -> tuple[dict[str, WirePostings], dict[str, WirePostings]]:
            debits = await postings.debits(connection, ids)
            return debits, await postings.returns(connection, return_ids) if return_ids else {}

        found, _ = await self._by_now(read, deadline)
        return found

    async def page_of_debits(self, after: str | None, limit: int) -> list[WirePostings]:
        async with self._database.transaction() as connection:
            return await postings.page_of_debits(connection, after or "", limit)

    async def _by_now(
        self, read: Callable[[AsyncConnection], Awaitable[_Sums]], deadline: float
    ) -> tuple[_Sums, int]:
        while True:
            up_to = await self._catch_up(deadline)
            async with self._database.transaction() as connection:
                # From here on until this transaction ends sums are not emptied, and hold what the bookmark has passed.
                # Sums that an operator has made anew meanwhile may lack postings up to there.
                await postings.keep(connection)
                if await cursor.read(connection, postings.STREAM) >= up_to:
                    return await read(connection), up_to

    async def _catch_up(self, deadline: float) -> int:
        """Add all postings that there are by now. Postings that arrive meanwhile are left for the next call.

        Returns:
            The position of the last one.
        """
        while (added := await self.add_page(deadline)).postings >= self._page_size:
            pass
        return added.up_to
