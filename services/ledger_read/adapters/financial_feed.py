"""The financial provider's event feed: its pages, each entry with what it means to us."""

from __future__ import annotations

import time
from typing import Any

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal
from libs.providers.feed import decode_entries
from libs.providers.http import ProviderClient
from services.ledger_read.adapters.feed_translations import (
    OPERATION,
    TRANSLATIONS,
    EntryAnswer,
)
from services.ledger_read.adapters.financial_answers import Answer, read_answer
from services.ledger_read.models import FeedEntry

FETCH_SECONDS = 10.0


class FeedPageAnswer(Answer):
    events: list[Any]


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: int, limit: int) -> list[FeedEntry]:
        """The entries after a position, at most `limit`.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
            UndecodableEntry: the next entry is not of a shape that is known.
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
        page = read_answer(OPERATION, FeedPageAnswer, answer)
        return decode_entries(page.events, after, _translate)


def _translate(entry: Any) -> FeedEntry:
    head = read_answer(OPERATION, EntryAnswer, entry)
    translation = TRANSLATIONS.get(head.type)
    return FeedEntry(head.position, head.type, translation(entry) if translation else None)
