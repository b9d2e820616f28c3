"""Ending a test with a reconciliation: what callers were told, what we hold and what the bank holds agree."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from libs.contracts.operating.differences import DifferenceState, ListOperatorDifferences
from libs.contracts.operating.pages import Order, Place
from libs.persistence.engine import Database, open_database
from services.reconciliation.repository import recorded, runs
from services.reconciliation.repository.recorded import RecordedDifference
from services.reconciliation.repository.runs import Run
from tests.support.pace import pace
from tests.support.stack import Stack

SETTLE_SECONDS = 30.0
"""What a fault has held up may take so long to come to its end: backoffs and leases among it."""
RUN_SECONDS = 60.0
"""On a quiet machine, as above; see `pace`."""
POLL_SECONDS = 0.05
PAGE = 200


@asynccontextmanager
async def reconciliation_database(stack: Stack) -> AsyncIterator[Database]:
    url = stack.environment.database_urls["reconciliation"]
    database = open_database(url, "tests", pool_size=2)
    try:
        yield database
    finally:
        await database.close()


async def reconcile(stack: Stack) -> tuple[Run, list[RecordedDifference]]:
    """A whole run from now on, and the differences that are open after it."""
    async with reconciliation_database(stack) as database:
        return await _reconcile(stack, database)


async def recorded_differences(
    database: Database, state: DifferenceState | None = DifferenceState.OPEN
) -> list[RecordedDifference]:
    """All of them, the oldest first; in any state when it is None."""
    found: list[RecordedDifference] = []
    after = None
    while True:
        query = ListOperatorDifferences(state=state, order=Order.OLDEST, limit=PAGE, after=after)
        async with database.snapshot() as connection:
            page = await recorded.page(connection, query)
        found += page[:PAGE]
        if len(page) <= PAGE:
            return found
        last = found[-1]
        after = Place(last.first_seen, str(last.difference_id)).encode()


async def assert_reconciled(stack: Stack, seconds: float = SETTLE_SECONDS) -> None:
    """A run finds no difference, nothing in flight included, within `seconds`. Fails with what differs."""
    deadline = time.monotonic() + seconds * pace()
    async with reconciliation_database(stack) as database:
        while True:
            run, found = await _reconcile(stack, database)
            if not found and not run.in_flight:
                return
            if time.monotonic() > deadline:
                told = "\n".join(describe(one) for one in found)
                raise AssertionError(f"in flight: {run.in_flight}; differences: {told or 'none'}")


def describe(one: RecordedDifference) -> str:
    return f"{one.kind} {dict(one.ids)} ours {one.ours} theirs {one.theirs}"


async def _reconcile(stack: Stack, database: Database) -> tuple[Run, list[RecordedDifference]]:
    async with database.transaction() as connection:
        run_id = await runs.request_run(connection, "test")
    deadline = time.monotonic() + RUN_SECONDS * pace()
    while True:
        async with database.transaction() as connection:
            run = await runs.find(connection, run_id)
        assert run is not None
        if run.finished_at is not None:
            assert run.outcome == "complete", run
            return run, await recorded_differences(database)
        if time.monotonic() > deadline:
            raise AssertionError(f"not ended: {run}; {stack.log('reconciliation')[-4000:]}")
        await asyncio.sleep(POLL_SECONDS)
