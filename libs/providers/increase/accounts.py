"""Accounts of Increase: what is read of them, and the calls that read them.

They are not read as the SDK's model, whose banks and kinds of funding are those of one release.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from increase import AsyncIncrease, Omit

from libs.providers.increase.answers import read_answer
from libs.providers.increase.new_statuses import note_new_status

OPEN, CLOSED = "open", "closed"


class Account(msgspec.Struct):
    """`interest_rate`: of a year, as a decimal fraction. `status`: `OPEN`, `CLOSED`, or one that Increase has added."""

    id: str
    created_at: datetime
    entity_id: str
    interest_rate: str
    name: str
    status: str
    closed_at: datetime | None = None
    idempotency_key: str | None = None


def status_of(account: Account) -> str:
    """`OPEN` or `CLOSED`. In a status that Increase has added, an account is open until it says when it was closed."""
    if account.status in (OPEN, CLOSED):
        return account.status
    note_new_status("account", account.status)
    return OPEN if account.closed_at is None else CLOSED


class Accounts(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[Account]
    next_cursor: str | None = None


async def list_accounts(sdk: AsyncIncrease, cursor: str | Omit, limit: int) -> Accounts:
    answer = await sdk.accounts.with_raw_response.list(cursor=cursor, limit=limit)
    return read_answer(answer, Accounts)


async def retrieve_account(sdk: AsyncIncrease, account_id: str) -> Account:
    return read_answer(await sdk.accounts.with_raw_response.retrieve(account_id), Account)
