"""Increase's lists of all accounts, account numbers and interest, for a caller that wants many accounts.

A page is one request for 100 rows; accounts that are read one by one take two or three requests each. Increase
allows 100 requests a second, of all keys together, unless it has raised the limit
(https://increase.com/documentation/rate-limits). The lists cannot be narrowed to a partner, so they are used for a
partner that has a good part of the accounts at Increase.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TypeVar

from libs.contracts.bank_days import BANK_ZONE, today_at_the_bank
from libs.gathering import gather_or_cancel
from libs.providers.increase.account_numbers import LIST_NUMBERS
from libs.providers.increase.account_numbers import listed as listed_numbers
from libs.providers.increase.accounts import Account, list_accounts
from libs.providers.increase.lists import LARGEST_PAGE, CursorPage, read_page
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.increase.transactions import (
    INTEREST,
    ListedTransaction,
    is_earned_by_its_account,
    list_transactions,
)

MOST_PAGES = 50
"""Of a list, or of a month's interest. Pages are read one after the other, before a caller's deadline."""
ACCOUNTS_FOR_A_PAGE = 16
"""A list is read where it has at most one page for this many wanted accounts. Reading these one by one takes as long as
a page: 32 requests are under way at once, and an account takes two.
"""
LIST_ACCOUNTS = "list_accounts"

RowT = TypeVar("RowT")
ReadPage = Callable[[str | None], Awaitable[CursorPage[RowT]]]
"""Reads the page at a cursor."""


@dataclass(slots=True)
class Listed:
    """What the lists tell; None where a list is too long for so few accounts.

    Args:
        accounts: by their ids.
        interest_cents: of this year, by the ids of the accounts that have any.
    """

    accounts: Mapping[str, Account] | None = None
    interest_cents: Mapping[str, int] | None = None

    @property
    def is_whole(self) -> bool:
        return self.accounts is not None and self.interest_cents is not None

    def account(self, account_id: str) -> Account | None:
        """None: it has to be read."""
        return None if self.accounts is None else self.accounts.get(account_id)

    def interest_of(self, account_id: str) -> int | None:
        """In cents. None: it has to be read."""
        return None if self.interest_cents is None else self.interest_cents.get(account_id, 0)


class WholeLists:
    def __init__(self, reader: Reader, numbers: AccountNumbers) -> None:
        self._reader = reader
        self._numbers = numbers
        self._longer_than: defaultdict[str, int] = defaultdict(int)
        """By list, a number of pages of which it has more. Lists only grow: fewer pages are not tried again."""

    async def read(self, account_ids: Sequence[str], deadline: float) -> Listed:
        """The accounts and their interest. Their numbers are kept by `AccountNumbers`.

        Raises ProviderTimeout, Unavailable, ProviderError.
        """
        listed = Listed()
        most_pages = _most_pages(len(account_ids))
        if most_pages <= self._longer_than[LIST_ACCOUNTS]:
            return listed
        unknown = self._numbers.how_many_unknown(account_ids)
        await gather_or_cancel(
            (
                self._read_accounts(listed, most_pages, deadline),
                self._read_numbers(_most_pages(unknown), deadline),
                self._read_interest(listed, most_pages, deadline),
            ),
            name="whole_lists",
        )
        return listed

    async def _read_accounts(self, listed: Listed, most_pages: int, deadline: float) -> None:
        rows = await self._whole(
            LIST_ACCOUNTS,
            most_pages,
            lambda cursor: read_page(
                self._reader.client,
                LIST_ACCOUNTS,
                lambda sdk, begins: list_accounts(sdk, begins, LARGEST_PAGE),
                cursor,
                deadline=deadline,
            ),
        )
        if rows is not None:
            listed.accounts = {account.id: account for account in rows}

    async def _read_numbers(self, most_pages: int, deadline: float) -> None:
        rows = await self._whole(
            LIST_NUMBERS,
            most_pages,
            lambda cursor: read_page(
                self._reader.client,
                LIST_NUMBERS,
                listed_numbers(None),
                cursor,
                deadline=deadline,
            ),
        )
        self._numbers.keep_first(rows or ())

    async def _read_interest(self, listed: Listed, most_pages: int, deadline: float) -> None:
        """The months of the year side by side, since each is a list of its own."""
        today = today_at_the_bank()
        starts = [
            datetime(today.year, month, 1, tzinfo=BANK_ZONE) for month in range(1, today.month + 1)
        ]

        async def of_month(
            start: datetime, end: datetime | None
        ) -> Sequence[ListedTransaction] | None:
            return await self._whole(
                f"{INTEREST} {today.year}",
                most_pages,
                lambda cursor: list_transactions(
                    self._reader,
                    None,
                    cursor,
                    deadline,
                    categories=[INTEREST],
                    since=start,
                    before=end,
                ),
            )

        months = await gather_or_cancel(
            (of_month(start, end) for start, end in zip_longest(starts, starts[1:])), name=INTEREST
        )
        cents = Counter[str]()
        for rows in months:
            if rows is None:
                return
            for row in rows:
                if is_earned_by_its_account(row, today.year):
                    cents[row.account_id] += row.amount
        listed.interest_cents = cents

    async def _whole(self, name: str, most_pages: int, read: ReadPage[RowT]) -> list[RowT] | None:
        """All rows of a list; None when it has more pages."""
        if most_pages <= self._longer_than[name]:
            return None
        rows: list[RowT] = []
        cursor: str | None = None
        for _ in range(most_pages):
            page = await read(cursor)
            rows += page.rows
            cursor = page.next_cursor
            if cursor is None:
                return rows
        self._longer_than[name] = max(self._longer_than[name], most_pages)
        return None


def _most_pages(accounts: int) -> int:
    return min(accounts // ACCOUNTS_FOR_A_PAGE, MOST_PAGES)
