"""Several processes mirror the same account."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from libs.contracts.errors import Unavailable
from libs.contracts.transactions import ListTransactions
from libs.persistence.engine import Database
from services.ledger_read.mirror.catching_up import open_catching_up
from services.ledger_read.mirror.ledger import MirroredLedger
from services.ledger_read.mirror.pages import MirroredPages
from services.ledger_read.mirror.store import PostingStore
from tests.integration.mirror.mirrors import Mirror, newest_first, open_mirror, some, soon
from tests.support.pace import pace
from tests.support.posting_source import ScriptedSource, read_whole


async def test_a_gap_that_another_process_opens_before_the_page_is_read_is_filled_first(
    opened: AsyncExitStack, source: ScriptedSource, database: Database, account_id: str
) -> None:
    source.post(account_id, *some(7))
    catching_up = await opened.enter_async_context(open_catching_up(source, PostingStore(database)))
    caught_up = catching_up.catch_up
    calls = 0

    async def then_overtaken(of_account: str, deadline: float) -> None:
        nonlocal calls
        calls += 1
        await caught_up(of_account, deadline)
        if calls == 1:
            source.post(of_account, *some(12, 7))
            newest = await read_whole(await source.page(of_account, None, deadline), deadline)
            assert await PostingStore(database).add_newest(of_account, newest)

    catching_up.catch_up = then_overtaken  # type: ignore[method-assign, assignment]
    pages: Any = MirroredPages(database)
    ledger = MirroredLedger(source, catching_up, pages, others=pages)  # nothing else is read

    found = await ledger.transactions(ListTransactions(account_id=account_id), soon())

    assert [row.transaction_id for row in found.rows] == newest_first(source.histories[account_id])
    assert (found.total, calls) == (19, 2)


async def test_processes_read_a_history_once_together(
    opened: AsyncExitStack, source: ScriptedSource, database: Database, account_id: str
) -> None:
    source.post(account_id, *some(60))
    mirrors = [await open_mirror(opened, source, database) for _ in range(3)]

    await asyncio.gather(*(mirror.catch_up(account_id) for mirror in mirrors))

    gaps = [cursor for _, cursor in source.asked if cursor is not None]
    assert len(gaps) == len(set(gaps)) == 11
    assert (await mirrors[0].page(account_id))[0] == newest_first(source.histories[account_id])


class LateStore(PostingStore):
    """Of a process that takes its time once between finding a gap and taking it, for its first piece or a later one."""

    def __init__(
        self, database: Database, meanwhile: Callable[[], Awaitable[None]], piece: int = 1
    ) -> None:
        super().__init__(database)
        self._meanwhile = meanwhile
        self._pieces_left = piece

    async def take(self, account_id: str, filler: uuid.UUID) -> bool:
        self._pieces_left -= 1
        if self._pieces_left == 0:
            await self._meanwhile()
        return await super().take(account_id, filler)


async def read_one_page(mirror: Mirror, account_id: str) -> None:
    filler = uuid.uuid4()
    assert await mirror.store.take(account_id, filler)
    gap = await mirror.store.gap(account_id)
    assert gap is not None
    page = await read_whole(await mirror.source.page(account_id, gap.cursor, soon()), soon())
    assert await mirror.store.fill(account_id, filler, gap, page)
    await mirror.store.release(account_id, filler)


async def run_out(
    database: Database, account_id: str, moved: timedelta = timedelta(seconds=-1)
) -> None:
    """The lease of the process that reads the account's history. `moved`: where its end is put, from now on."""
    async with database.driver() as connection:
        done = await connection.execute(
            "UPDATE posting_mirror SET filling_until = now() + $2 "
            "WHERE account_id = $1 AND filling_until > now()",
            account_id,
            moved,
        )
    assert done == "UPDATE 1", "there is a lease"


@pytest.mark.parametrize("meanwhile", [Mirror.catch_up, read_one_page], ids=["closed", "moved"])
async def test_what_another_process_has_read_of_a_gap_meanwhile_is_not_read_again(
    opened: AsyncExitStack,
    mirror: Mirror,
    source: ScriptedSource,
    database: Database,
    account_id: str,
    meanwhile: Callable[[Mirror, str], Awaitable[None]],
) -> None:
    source.post(account_id, *some(12))
    store = LateStore(database, lambda: meanwhile(mirror, account_id))
    late = await opened.enter_async_context(open_catching_up(source, store))

    await late.catch_up(account_id, soon())

    assert [cursor for _, cursor in source.asked if cursor is not None] == ["7", "2"]
    assert (await mirror.page(account_id))[1] == 12
    assert await mirror.store.take(account_id, uuid.uuid4())


async def test_a_history_that_waits_for_its_turn_may_be_read_by_another_process(
    opened: AsyncExitStack,
    source: ScriptedSource,
    database: Database,
    account_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.ledger_read.mirror.catching_up.FILLS_AT_ONCE", 1)
    busy, free = [await open_mirror(opened, source, database) for _ in range(2)]
    other = f"acc_{uuid.uuid4().hex}"
    source.post(other, *some(12))
    source.post(account_id, *some(12))
    held = source.hold_older(other)
    first = asyncio.create_task(busy.catch_up(other))
    await held.is_asked.wait()
    with pytest.raises(Unavailable):
        await busy.catch_up(account_id, time.time() + pace())

    await free.catch_up(account_id, time.time() + 5 * pace())

    assert (await free.page(account_id))[0] == newest_first(source.histories[account_id])
    held.may_answer.set()
    await first


async def test_a_lease_that_runs_out_while_its_history_waits_for_its_turn_is_taken_over(
    opened: AsyncExitStack,
    mirror: Mirror,
    source: ScriptedSource,
    database: Database,
    account_id: str,
) -> None:
    async def taken_over() -> None:
        await run_out(database, account_id)
        await mirror.catch_up(account_id)

    source.post(account_id, *some(40))
    store = LateStore(database, taken_over, piece=2)
    late = await opened.enter_async_context(open_catching_up(source, store))

    await late.catch_up(account_id, soon())

    cursors = [cursor for _, cursor in source.asked if cursor is not None]
    assert cursors == ["35", "30", "25", "20", "15", "10", "5"], "each page once"
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])
    assert await mirror.store.take(account_id, uuid.uuid4()), "no lease stays"


@pytest.mark.parametrize(
    "moved",
    [timedelta(seconds=-1), timedelta(hours=1)],
    ids=["its-time-passed", "the-clock-was-set-back"],
)
async def test_a_process_that_froze_is_replaced_and_writes_nothing_afterwards(
    mirror: Mirror, source: ScriptedSource, database: Database, account_id: str, moved: timedelta
) -> None:
    source.post(account_id, *some(12))
    frozen = uuid.uuid4()
    page = await read_whole(await source.page(account_id, None, soon()), soon())
    await mirror.store.add_newest(account_id, page)
    assert await mirror.store.take(account_id, frozen)
    gap = await mirror.store.gap(account_id)
    assert gap is not None
    late = await read_whole(await source.page(account_id, gap.cursor, soon()), soon())
    await run_out(database, account_id, moved)

    await mirror.catch_up(account_id)

    assert not await mirror.store.fill(account_id, frozen, gap, late)
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])
