"""The numbers of an account, objects of their own: the first one was made with the account, and others may follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from increase import AsyncIncrease, Omit, omit
from increase.types import AccountNumber

from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.lists import LARGEST_PAGE, Listed, read_pages

LIST_NUMBERS = "list_account_numbers"
MOST_PAGES = 99
"""After the first one."""
TOO_MANY = "The account has more than 10,000 numbers."


def listed(
    account_id: str,
) -> Callable[[AsyncIncrease, str | Omit], Awaitable[Listed[AccountNumber]]]:
    """Reads a page of them, the newest first."""
    return lambda sdk, cursor: sdk.account_numbers.list(
        account_id=account_id, cursor=cursor, limit=LARGEST_PAGE
    )


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
