"""Loads of swept deposits, over a bank in the test's own hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal

import pytest

from libs.contracts.operating.differences import START_RECONCILIATION, StartReconciliation
from libs.persistence.engine import Database
from services.reconciliation.handlers.deposit_locations import DepositLocationComparison
from services.reconciliation.ports import DepositLoad, Posting
from tests.integration.reconciliation.operating import answer
from tests.support.pace import pace

pytestmark = pytest.mark.asyncio(loop_scope="session")


class FakeBank:
    """See `ports.Financial`. The locations of no load are together what was swept: each load is a suspect."""

    def __init__(self, loads: int) -> None:
        self.loads = [
            DepositLoad(position, "acc_1", f"2024-03-{position:02}", Decimal("10.00"), 1)
            for position in range(1, loads + 1)
        ]

    async def postings_after(self, position: int, deadline: float) -> Sequence[Posting]:
        return []

    async def loads_after(self, position: int, deadline: float) -> Sequence[DepositLoad]:
        return [load for load in self.loads if load.position > position]

    async def location_total(
        self, account_id: str, load_date: str, deadline: float
    ) -> tuple[int, Decimal]:
        return 1, Decimal(0)


async def scanned(database: Database, bank: FakeBank) -> list[str]:
    """The suspects of one page, which is recorded."""
    comparison = DepositLocationComparison(database, bank)
    page = await comparison.scans["loads"](None, time.time() + 10 * pace())
    async with database.transaction() as connection:
        if page.record is not None:
            await page.record(connection)
    return list(page.suspects)


async def test_loads_below_the_bookmark_are_read_again_after_the_provider_was_restored(
    database: Database,
) -> None:
    first = await scanned(database, FakeBank(3))
    restored = FakeBank(2)

    before = await scanned(database, restored)
    await answer(
        database,
        START_RECONCILIATION,
        StartReconciliation(read_postings_again=True, reason="It was restored"),
    )
    after = await scanned(database, restored)

    assert (first, before, after) == (["1", "2", "3"], [], ["1", "2"])
