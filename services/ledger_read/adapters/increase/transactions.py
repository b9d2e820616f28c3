"""Increase's transactions as they are listed: of their many sources the fields that are needed.

They are not read as the SDK's model, whose categories are those of one release: Increase adds to them at any time,
and an account must be readable with one that is not known yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from increase import AsyncIncrease, omit
from increase.types.transaction_list_params import CreatedAt

from libs.contracts.errors import ProviderError
from libs.contracts.exact_json import decode
from libs.providers.increase.lists import LARGEST_PAGE, CursorPage
from services.ledger_read.adapters.increase.periods import last_day
from services.ledger_read.adapters.increase.reading import Reader
from services.ledger_read.adapters.refused_reads import NotKnown, lost_accounts

INTEREST = "interest_payment"
WIRE = "wire_transfer_intention"


_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class ListedTransaction(msgspec.Struct, frozen=True):
    """`amount` in cents; negative: money left the account."""

    id: str
    account_id: str
    amount: int
    description: str
    created_at: _Moment
    source: dict[str, Any]

    @property
    def category(self) -> str:
        return str(self.source.get("category"))

    @property
    def details(self) -> dict[str, Any]:
        """What the source says beside its category."""
        details = self.source.get(self.category)
        return details if isinstance(details, dict) else {}


class _Listed(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[ListedTransaction]
    next_cursor: str | None


def is_earned_by_its_account(interest: ListedTransaction, year: int) -> bool:
    """Whether the account into which it was paid has earned it in this year.

    Increase may pay it into another account. It pays on the first day of the next month: December's in the next year.
    """
    account_id = interest.account_id
    if interest.details.get("accrued_on_account_id", account_id) != account_id:
        return False
    try:
        end = msgspec.convert(interest.details.get("period_end"), _Moment)
    except msgspec.ValidationError:
        end = interest.created_at
    return last_day(end).year == year


async def list_transactions(
    reader: Reader,
    account_id: str | None,
    cursor: str | None,
    deadline: float,
    *,
    categories: Sequence[str] = (),
    since: datetime | None = None,
    before: datetime | None = None,
) -> CursorPage[ListedTransaction]:
    """A page of an account's transactions, or of all accounts', the newest first.

    Raises ProviderTimeout, Unavailable, ProviderError.
    """
    created_at: CreatedAt = {}
    if since is not None:
        created_at["on_or_after"] = since
    if before is not None:
        created_at["before"] = before

    async def call(sdk: AsyncIncrease) -> _Listed:
        answer = await sdk.transactions.with_raw_response.list(
            account_id=account_id or omit,
            category={"in": list(categories)} if categories else omit,  # type: ignore[arg-type]
            created_at=created_at or omit,
            cursor=cursor or omit,
            limit=LARGEST_PAGE,
        )
        return msgspec.convert(decode(answer.http_response.content), _Listed)

    try:
        page = await reader.read("list_transactions", call, deadline)
    except NotKnown:
        raise (ProviderError() if account_id is None else lost_accounts([account_id])) from None
    if account_id is not None and any(row.account_id != account_id for row in page.data):
        raise reader.broken("list_transactions", "of another account")
    return CursorPage(page.data, page.next_cursor)


async def get_transaction(
    reader: Reader, transaction_id: str, deadline: float
) -> ListedTransaction:
    """Raises as `Reader.read`."""

    async def call(sdk: AsyncIncrease) -> ListedTransaction:
        answer = await sdk.transactions.with_raw_response.retrieve(transaction_id)
        return msgspec.convert(decode(answer.http_response.content), ListedTransaction)

    return await reader.read("get_transaction", call, deadline)
