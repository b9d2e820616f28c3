"""External accounts of Increase: what is read of them, and the calls that read them.

They are not read as the SDK's model, whose kinds of holders and of funding are those of one release.
"""

from __future__ import annotations

import msgspec
from increase import AsyncIncrease, Omit

from libs.providers.increase.answers import read_answer

ARCHIVED = "archived"


class BankDetails(msgspec.Struct):
    """Of an external account, with any status."""

    id: str
    account_number: str
    routing_number: str


class ExternalAccount(msgspec.Struct):
    """`status`: `active`, `ARCHIVED`, or one that Increase has added: only an archived one is known to be unusable."""

    id: str
    account_number: str
    routing_number: str
    status: str
    idempotency_key: str | None = None


class ExternalAccounts(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[ExternalAccount]
    next_cursor: str | None = None


async def list_external_accounts(
    sdk: AsyncIncrease, cursor: str | Omit, limit: int
) -> ExternalAccounts:
    answer = await sdk.external_accounts.with_raw_response.list(cursor=cursor, limit=limit)
    return read_answer(answer, ExternalAccounts)


async def retrieve_bank_details(sdk: AsyncIncrease, external_account_id: str) -> BankDetails:
    answer = await sdk.external_accounts.with_raw_response.retrieve(external_account_id)
    return read_answer(answer, BankDetails)


async def retrieve_external_account(
    sdk: AsyncIncrease, external_account_id: str
) -> ExternalAccount:
    answer = await sdk.external_accounts.with_raw_response.retrieve(external_account_id)
    return read_answer(answer, ExternalAccount)
