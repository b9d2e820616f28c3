"""The account numbers of Increase's accounts: objects of their own, of which an account may have several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cachetools import LRUCache

from libs.providers.increase.account_numbers import (
    LIST_NUMBERS,
    AccountNumber,
    first_numbers,
    first_page,
    with_the_rest,
)
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.refused_reads import lost_accounts

REMEMBERED = 100_000
"""Numbers kept in memory: an account keeps its first one."""


class AccountNumbers:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._numbers: LRUCache[str, str] = LRUCache(REMEMBERED)

    async def number(self, account_id: str, deadline: float) -> str:
        """The first number of an account, which it was given when it was opened.

        Raises ProviderTimeout, Unavailable, ProviderError: also when it has none.
        """
        known = self._numbers.get(account_id)
        if known is not None:
            return known
        page = await self._reader.of_account(
            account_id, LIST_NUMBERS, lambda sdk: first_page(sdk, account_id), deadline
        )
        numbers = await with_the_rest(self._reader.client, account_id, page, deadline=deadline)
        if not numbers:
            raise lost_accounts([account_id])
        self.keep_first(numbers)
        return self._numbers[account_id]

    def how_many_unknown(self, account_ids: Sequence[str]) -> int:
        """How many accounts' numbers would have to be read."""
        return sum(account_id not in self._numbers for account_id in account_ids)

    def keep_first(self, numbers: Iterable[AccountNumber]) -> None:
        """Remember the first number of each account, of which these are all numbers."""
        for account_id, number in first_numbers(numbers).items():
            self._numbers[account_id] = number.account_number
