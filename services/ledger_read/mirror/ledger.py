"""A financial provider's ledger whose transactions come from the mirror."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from cachetools import LRUCache

from libs.contracts.ach import AchRequest, ListAchRequests
from libs.contracts.deposit_locations import DepositLocation, ListDepositLocations
from libs.contracts.errors import Unavailable
from libs.contracts.settlement import ListSettlementCalculations, SettlementCalculation
from libs.contracts.statements import ListStatements, Statement
from libs.contracts.transactions import ListTransactions, Transaction
from libs.persistence.engine import Database
from services.ledger_read.mirror.catching_up import (
    ANSWER_MARGIN_SECONDS,
    STILL_READ,
    CatchingUp,
    open_catching_up,
)
from services.ledger_read.mirror.pages import MirroredPages
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.models import AccountHeading, Page
from services.ledger_read.ports import LedgerBesidePostings, PostingSource

REMEMBERED_HEADINGS = 100_000


class MirroredLedger:
    """See `ports.Ledger`. What is no transaction is read at `others`."""

    def __init__(
        self,
        source: PostingSource,
        catching_up: CatchingUp,
        pages: MirroredPages,
        others: LedgerBesidePostings,
    ) -> None:
        self._source = source
        self._catching_up = catching_up
        self._pages = pages
        self._others = others
        # An account keeps its number and its group.
        self._headings: LRUCache[str, AccountHeading] = LRUCache(REMEMBERED_HEADINGS)

    async def transactions(self, command: ListTransactions, deadline: float) -> Page[Transaction]:
        heading = await self._heading(command.account_id, deadline)
        if command.transaction_id is None:
            return await self._caught_up_page(command, heading, deadline)
        found = await self._pages.one(command, heading)
        if found.total == 0:  # a stored transaction never changes
            await self._catching_up.catch_up(command.account_id, deadline)
            found = await self._pages.one(command, heading)
        return found

    async def deposit_locations(
        self, command: ListDepositLocations, deadline: float
    ) -> Page[DepositLocation]:
        return await self._others.deposit_locations(command, deadline)

    async def ach_requests(self, command: ListAchRequests, deadline: float) -> list[AchRequest]:
        return await self._others.ach_requests(command, deadline)

    async def statements(self, command: ListStatements, deadline: float) -> list[Statement]:
        return await self._others.statements(command, deadline)

    async def settlement_calculations(
        self, command: ListSettlementCalculations, deadline: float
    ) -> list[SettlementCalculation] | None:
        return await self._others.settlement_calculations(command, deadline)

    async def _caught_up_page(
        self, command: ListTransactions, heading: AccountHeading, deadline: float
    ) -> Page[Transaction]:
        while True:
            await self._catching_up.catch_up(command.account_id, deadline)
            page = await self._pages.page(command, heading)
            if page is not None:
                return page
            # Another process has begun to read newer postings meanwhile.
            if time.time() > deadline - ANSWER_MARGIN_SECONDS:
                raise Unavailable(STILL_READ)

    async def _heading(self, account_id: str, deadline: float) -> AccountHeading:
        heading = self._headings.get(account_id)
        if heading is None:
            heading = await self._source.heading(account_id, deadline)
            self._headings[account_id] = heading
        return heading


async def open_mirrored_ledger(
    opened: AsyncExitStack,
    database: Database,
    source: PostingSource,
    *,
    others: LedgerBesidePostings,
) -> MirroredLedger:
    """A ledger over the mirror of the source's postings. Its readings are ended with `opened`."""
    catching_up = await opened.enter_async_context(open_catching_up(source, PostingStore(database)))
    return MirroredLedger(source, catching_up, MirroredPages(database), others)
