"""A provider's list of postings whose history, pages and failures a test decides."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal

from services.ledger_read.models import AccountHeading, ListedPostings, Posting, PostingPage
from services.ledger_read.ports import CursorRefused


def posting(settled_at: datetime, cents: int = 100) -> Posting:
    """A credit of so many cents, or a debit when they are negative."""
    made = uuid.uuid4()
    return Posting(
        provider_id=f"posting_{made.hex}",
        transaction_id=str(made),
        tx_uuid=made,
        type="withdrawal" if cents < 0 else "deposit",
        settled_at=settled_at,
        amount=abs(Decimal(cents).scaleb(-2)),
        is_debit=cents < 0,
        counterparty_name="Harbor Café",
        counterparty_id=None,
    )


async def read_whole(page: ListedPostings, deadline: float) -> PostingPage:
    """A page with all of its postings, as it is stored in an empty mirror."""
    postings = await page.read(page.ids, deadline)
    return PostingPage(postings, page.ids[-1] if page.ids else None, page.next_cursor)


class Held:
    """Answers that are held back."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()


class ScriptedSource:
    """See `ports.PostingSource`. A cursor counts the postings that are older than its page's last one."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.histories: defaultdict[str, list[Posting]] = defaultdict(list)
        """By account, in the order of posting."""
        self.asked: list[tuple[str, str | None]] = []
        self.failures: dict[int, Exception] = {}
        """By the number of a call, from 1."""
        self.refused: set[str] = set()
        """Cursors that are not taken any more."""
        self.read: list[str] = []
        """The provider's ids of the postings that were read beyond the list."""
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._held: dict[str, Held] = {}

    def hold_older(self, account_id: str) -> Held:
        """Hold back all pages of the account but the newest."""
        self._held[account_id] = Held()
        return self._held[account_id]

    def post(self, account_id: str, *postings: Posting) -> None:
        self.histories[account_id] += postings

    async def heading(self, account_id: str, deadline: float) -> AccountHeading:
        return AccountHeading("123456789012", "deposit")

    async def page(self, account_id: str, cursor: str | None, deadline: float) -> ListedPostings:
        self.asked.append((account_id, cursor))
        failure = self.failures.get(len(self.asked))
        if cursor in self.refused:
            failure = CursorRefused()
        history = self.histories[account_id]
        left = len(history) if cursor is None else int(cursor)
        first = max(0, left - self.page_size)
        rows = history[first:left][::-1]

        async def read(ids: Collection[str], deadline: float) -> list[Posting]:
            postings = [row for row in rows if row.provider_id in ids]
            self.read += [one.provider_id for one in postings]
            return postings

        cursor_below = str(first) if first else None
        page = ListedPostings([row.provider_id for row in rows], cursor_below, read)
        await self.may_answer.wait()
        if cursor is not None and (held := self._held.get(account_id)) is not None:
            held.is_asked.set()
            await held.may_answer.wait()
        if failure is not None:
            raise failure
        return page
