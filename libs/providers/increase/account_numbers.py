"""The numbers of an account, objects of their own: the first one was made with the account, and others may follow.

They are read by what is used of them. The SDK's model refuses one with a new kind of limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

import msgspec
from increase import AsyncIncrease, Omit, omit

from libs.providers.increase.answers import read_answer
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.lists import LARGEST_PAGE, Listed, read_pages

LIST_NUMBERS = "list_account_numbers"
MOST_PAGES = 99
"""After the first one."""
TOO_MANY = "The account has more than 10,000 numbers."


class AccountNumber(msgspec.Struct):
    """`status`: payments can be made to a number that is `active`. Of the others Increase may add some."""

    id: str
    account_id: str
    account_number: str
    created_at: datetime
    status: str
    idempotency_key: str | None = None


class AccountNumbers(msgspec.Struct):
    data: list[AccountNumber]
    next_cursor: str | None = None


def listed(
    account_id: str | None,
) -> Callable[[AsyncIncrease, str | Omit], Awaitable[Listed[AccountNumber]]]:
    """Reads a page of them, the newest first; without an account, of those of all accounts."""

    async def call(sdk: AsyncIncrease, cursor: str | Omit) -> AccountNumbers:
        answer = await sdk.account_numbers.with_raw_response.list(
            account_id=account_id or omit, cursor=cursor, limit=LARGEST_PAGE
        )
        return read_answer(answer, AccountNumbers)

    return call


async def first_page(sdk: AsyncIncrease, account_id: str) -> Listed[AccountNumber]:
    return await listed(account_id)(sdk, omit)


async def with_the_rest(
    client: IncreaseClient, account_id: str, page: Listed[AccountNumber], *, deadline: float
) -> list[AccountNumber]:
    """All numbers of the account, of which this is the first page.

    Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer, or there are too many.
    """
    found = [*page.data]
    if page.next_cursor is not None:
        pages = read_pages(
            client,
            LIST_NUMBERS,
            listed(account_id),
            deadline=deadline,
            most_pages=MOST_PAGES,
            too_many=TOO_MANY,
            begins=page.next_cursor,
        )
        found += [number async for following in pages for number in following.rows]
    return [number for number in found if number.account_id == account_id]


def first_numbers(numbers: Iterable[AccountNumber]) -> dict[str, AccountNumber]:
    """The first number of each account, by the account's id: that with the lowest id of those made in one second."""
    first: dict[str, AccountNumber] = {}
    for number in sorted(numbers, key=lambda number: (number.created_at, number.id)):
        first.setdefault(number.account_id, number)
    return first
