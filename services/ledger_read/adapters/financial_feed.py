"""The financial provider's event feed, translated: `TRANSLATIONS` has a row per type of entry that becomes an event."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from libs.contracts.accounts import AccountEventData
from libs.contracts.errors import ProviderError
from libs.contracts.events import EVENT_TYPES
from libs.providers.errors import ProviderRefusal
from libs.providers.http import ProviderClient
from services.ledger_read.adapters.financial_answers import (
    AccountAnswer,
    Answer,
    Instant,
    Text,
    last_four,
    read_answer,
)
from services.ledger_read.models import FeedEntry, News

OPERATION = "list_events"
FETCH_SECONDS = 10.0


class EntryAnswer(Answer):
    """What every entry has, whatever its type."""

    position: Annotated[int, Field(gt=0)]
    type: Text


class AccountEntryAnswer(EntryAnswer):
    customer_id: Text
    occurred_at: Instant
    data: AccountAnswer


class PageAnswer(Answer):
    events: list[Any]


def _account_news(entry: Any) -> News:
    answer = read_answer(OPERATION, AccountEntryAnswer, entry)
    account = dict(answer.data.to_account())
    account["account_number"] = last_four(answer.data.account_number)
    return News(
        event_type=EVENT_TYPES[answer.type],
        customer_id=answer.customer_id,
        resource_id=answer.data.account_id,
        occurred_at=answer.occurred_at,
        data=AccountEventData(**account, customer_id=answer.customer_id),
    )


TRANSLATIONS: dict[str, Callable[[Any], News]] = {
    "account.opened": _account_news,
    "account.restricted": _account_news,
    "account.unrestricted": _account_news,
    "account.closed": _account_news,
}


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[FeedEntry]:
        """The entries after a position, at most `limit`.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        """
        try:
            answer = await self._client.read(
                OPERATION,
                "/events",
                (("after", str(after)), ("limit", str(limit))),
                deadline=time.time() + FETCH_SECONDS,
            )
        except ProviderRefusal as refusal:
            raise ProviderError from refusal
        return [_translate(entry) for entry in read_answer(OPERATION, PageAnswer, answer).events]


def _translate(entry: Any) -> FeedEntry:
    head = read_answer(OPERATION, EntryAnswer, entry)
    translation = TRANSLATIONS.get(head.type)
    return FeedEntry(head.position, head.type, translation(entry) if translation else None)
