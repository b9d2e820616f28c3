"""The financial provider's event feed: its pages, each entry with its meaning to us."""

from __future__ import annotations

from typing import Any

from libs.providers.feed_entries import FeedCursor
from libs.providers.sandbox.feed_pages import read_entries
from libs.providers.sandbox.http import ProviderClient
from services.ledger_read.adapters.sandbox.feed_translations import (
    OPERATION,
    TRANSLATIONS,
    EntryAnswer,
)
from services.ledger_read.adapters.sandbox.financial_answers import read_answer
from services.ledger_read.models import FeedEntry


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: FeedCursor, limit: int) -> list[FeedEntry]:
        """As `read_entries`."""
        return await read_entries(self._client, _translate, after, limit)


def _translate(entry: Any) -> FeedEntry:
    head = read_answer(OPERATION, EntryAnswer, entry)
    translation = TRANSLATIONS.get(head.type)
    return FeedEntry(head.position, head.type, translation(entry) if translation else None)
