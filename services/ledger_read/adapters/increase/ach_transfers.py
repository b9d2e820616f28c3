"""Increase's ACH transfers: what is read of them, and the calls that read them.

They are not read as the SDK's model, whose codes of returns, of notifications of change and of entry classes are those
of one release.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from increase import AsyncIncrease, Omit

from libs.providers.increase.answers import read_answer
from libs.providers.increase.lists import LARGEST_PAGE


class Approval(msgspec.Struct):
    approved_at: datetime


class Cancellation(msgspec.Struct):
    canceled_at: datetime


class Submission(msgspec.Struct):
    submitted_at: datetime


class Settlement(msgspec.Struct):
    settled_at: datetime


class Return(msgspec.Struct):
    """`raw_return_reason_code`: Nacha's; `return_reason_code`: Increase's word for it."""

    created_at: datetime
    raw_return_reason_code: str
    return_reason_code: str


class AchTransfer(msgspec.Struct, rename={"return_": "return"}):
    """`amount` in cents; negative: a debit of the other account. Of the statuses Increase may add some."""

    id: str
    account_id: str
    amount: int
    created_at: datetime
    status: str
    approval: Approval | None = None
    cancellation: Cancellation | None = None
    return_: Return | None = None
    settlement: Settlement | None = None
    submission: Submission | None = None


class AchTransfers(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[AchTransfer]
    next_cursor: str | None = None


async def list_ach_transfers(
    sdk: AsyncIncrease, account_id: str, cursor: str | Omit
) -> AchTransfers:
    answer = await sdk.ach_transfers.with_raw_response.list(
        account_id=account_id, cursor=cursor, limit=LARGEST_PAGE
    )
    return read_answer(answer, AchTransfers)


async def retrieve_ach_transfer(sdk: AsyncIncrease, transfer_id: str) -> AchTransfer:
    return read_answer(await sdk.ach_transfers.with_raw_response.retrieve(transfer_id), AchTransfer)
