"""A mirror of postings as one process has it, and postings for its account."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, timedelta

from libs.contracts.transactions import ListTransactions
from libs.persistence.engine import Database
from services.ledger_read.mirror.catching_up import CatchingUp, open_catching_up
from services.ledger_read.mirror.pages import MirroredPages
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.models import AccountHeading, Posting
from tests.support.pace import pace
from tests.support.posting_source import ScriptedSource, posting

HEADING = AccountHeading("123456789012", "deposit")
NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)
PAGE_SIZE = 5


def soon() -> float:
    return time.time() + 20 * pace()


def at(hours: int) -> datetime:
    return NOON + timedelta(hours=hours)


def some(count: int, first: int = 0) -> list[Posting]:
    return [posting(at(first + number)) for number in range(count)]


def newest_first(postings: list[Posting]) -> list[str]:
    ordered = sorted(postings, key=lambda one: (one.settled_at, one.transaction_id), reverse=True)
    return [one.transaction_id for one in ordered]


class Mirror:
    """One process's mirror."""

    def __init__(self, source: ScriptedSource, database: Database, catching_up: CatchingUp) -> None:
        self.source = source
        self.store = PostingStore(database)
        self._pages = MirroredPages(database)
        self._catching_up = catching_up

    async def catch_up(self, account_id: str, deadline: float | None = None) -> None:
        await self._catching_up.catch_up(account_id, deadline or soon())

    async def page(self, account_id: str, page: int = 1, limit: int = 100) -> tuple[list[str], int]:
        """Of what is mirrored now."""
        command = ListTransactions(account_id=account_id, page=page, limit=limit)
        found = await self._pages.page(command, HEADING)
        assert found is not None
        return [row.transaction_id for row in found.rows], found.total

    async def within(self, account_id: str, start: date, end: date) -> tuple[list[str], int]:
        command = ListTransactions(
            account_id=account_id, start_date=start, end_date=end, page=1, limit=100
        )
        found = await self._pages.page(command, HEADING)
        assert found is not None
        return [row.transaction_id for row in found.rows], found.total

    async def all_pages(self, account_id: str, limit: int) -> list[str]:
        rows: list[str] = []
        number = 1
        while found := (await self.page(account_id, number, limit))[0]:
            rows += found
            number += 1
        return rows


async def open_mirror(stack: AsyncExitStack, source: ScriptedSource, database: Database) -> Mirror:
    catching_up = await stack.enter_async_context(open_catching_up(source, PostingStore(database)))
    return Mirror(source, database, catching_up)
