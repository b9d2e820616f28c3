"""The sums of postings, brought up to the provider's newest posting."""

from __future__ import annotations

from collections.abc import Sequence

from libs.persistence.cursor import CursorMoved
from libs.persistence.engine import Database
from services.reconciliation.ports import Financial
from services.reconciliation.repository import postings
from services.reconciliation.repository.postings import Posted, WirePostings


class Books:
    """The sums of the financial provider's postings, kept in our database and brought up to date page by page.

    Args:
        page_size: postings in a page of the provider's.
    """

    def __init__(self, database: Database, financial: Financial, *, page_size: int) -> None:
        self._database = database
        self._financial = financial
        self._page_size = page_size

    async def add_page(self, deadline: float) -> int:
        """Add the provider's next postings, one page at most.

        Returns:
            How many there were.
        """
        position = await self.position()
        found = await self._financial.postings_after(position, deadline)
        if found:
            try:
                async with self._database.transaction() as connection:
                    await postings.add(connection, position, found)
            except CursorMoved:
                pass  # added by another process meanwhile
        return len(found)

    async def catch_up(self, deadline: float) -> None:
        """Add all postings that there are by now. Postings that arrive meanwhile are left for the next call."""
        while await self.add_page(deadline) >= self._page_size:
            pass

    async def position(self) -> int:
        """Of the last posting that was added."""
        async with self._database.transaction() as connection:
            return await postings.position(connection)

    async def posted(self, account_ids: Sequence[str]) -> dict[str, Posted]:
        async with self._database.transaction() as connection:
            return await postings.posted(connection, account_ids)

    async def page_of_posted(self, after: str | None, limit: int) -> list[Posted]:
        async with self._database.transaction() as connection:
            return await postings.page_of_posted(connection, after or "", limit)

    async def debits(self, ids: Sequence[str]) -> dict[str, WirePostings]:
        async with self._database.transaction() as connection:
            return await postings.debits(connection, ids)

    async def returns(self, ids: Sequence[str]) -> dict[str, WirePostings]:
        async with self._database.transaction() as connection:
            return await postings.returns(connection, ids)

    async def page_of_debits(self, after: str | None, limit: int) -> list[WirePostings]:
        async with self._database.transaction() as connection:
            return await postings.page_of_debits(connection, after or "", limit)
