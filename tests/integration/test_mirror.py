"""The mirror of postings on its tables, with a provider whose pages and failures the tests decide."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.contracts.fields import BANK_ZONE
from libs.contracts.transactions import ListTransactions
from libs.persistence.engine import Database, open_database
from services.ledger_read.mirror import store as store_module
from services.ledger_read.mirror.catching_up import CatchingUp, open_catching_up
from services.ledger_read.mirror.ledger import MirroredLedger
from services.ledger_read.mirror.pages import MirroredPages
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.models import AccountHeading, Posting
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.posting_source import ScriptedSource, posting
from tests.support.waiting import eventually

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


@pytest_asyncio.fixture
async def database(environment: Environment) -> AsyncIterator[Database]:
    opened = open_database(environment.database_urls["ledger_read"], "tests")
    yield opened
    await opened.close()


@pytest.fixture
def account_id() -> str:
    return f"acc_{uuid.uuid4().hex}"


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource(PAGE_SIZE)


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def open_mirror(stack: AsyncExitStack, source: ScriptedSource, database: Database) -> Mirror:
    catching_up = await stack.enter_async_context(open_catching_up(source, PostingStore(database)))
    return Mirror(source, database, catching_up)


@pytest_asyncio.fixture
async def mirror(opened: AsyncExitStack, source: ScriptedSource, database: Database) -> Mirror:
    return await open_mirror(opened, source, database)


async def test_a_history_is_read_once_and_afterwards_one_page_at_a_time(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(23))
    await mirror.catch_up(account_id)
    whole = len(source.asked)
    source.post(account_id, *some(2, 23))

    await mirror.catch_up(account_id)

    ids, total = await mirror.page(account_id)
    assert (ids, total) == (newest_first(source.histories[account_id]), 25)
    assert (whole, len(source.asked)) == (5, 6)


async def test_a_posting_that_is_shown_late_is_found_below_those_that_are_known(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(8))
    await mirror.catch_up(account_id)
    source.histories[account_id].insert(5, posting(at(-50)))

    await mirror.catch_up(account_id)

    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


async def test_a_posting_that_is_shown_late_below_the_newest_page_is_found_by_its_event(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(12))
    await mirror.catch_up(account_id)
    late, newer = posting(at(2)), posting(at(50))
    source.histories[account_id].insert(3, late)

    was_stored = [await mirror.store.add_between(account_id, one) for one in (late, late, newer)]
    await mirror.catch_up(account_id)

    assert was_stored == [True, False, False]
    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 13)


async def test_a_posting_that_its_event_brings_into_a_gap_does_not_close_it(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(8))
    await mirror.catch_up(account_id)
    source.post(account_id, *some(20, 8))
    source.failures[4] = ProviderTimeout()
    with pytest.raises(ProviderTimeout):
        await mirror.catch_up(account_id)
    # The last one of the page that is read next.
    assert await mirror.store.add_between(account_id, source.histories[account_id][18])

    await mirror.catch_up(account_id)

    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 28)


async def test_an_event_of_an_account_that_is_not_mirrored_stores_nothing(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(1))

    assert not await mirror.store.add_between(account_id, source.histories[account_id][0])


async def test_postings_that_are_shown_late_are_found_though_they_are_more_than_a_page(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(3))
    first_shown = posting(at(20))
    source.post(account_id, first_shown)
    await mirror.catch_up(account_id)
    source.histories[account_id][3:3] = some(PAGE_SIZE + 2, 5)

    await mirror.catch_up(account_id)

    ids, total = await mirror.page(account_id)
    assert (ids, total) == (newest_first(source.histories[account_id]), 11)


async def test_a_reading_that_was_interrupted_goes_on_where_it_was(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(23))
    source.failures[3] = ProviderTimeout()
    with pytest.raises(ProviderTimeout):
        await mirror.catch_up(account_id)
    # More than a page of news, so that there are two gaps.
    source.post(account_id, *some(12, 23))
    source.failures[5] = ProviderError()
    with pytest.raises(ProviderError):
        await mirror.catch_up(account_id)

    await mirror.catch_up(account_id)

    cursors = [cursor for _, cursor in source.asked]
    assert cursors == [None, "18", "13", None, "30", None, "30", "25", "20", "13", "8", "3"]
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


async def test_a_reading_whose_cursor_is_not_taken_any_more_begins_again(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(23))
    source.failures[3] = ProviderTimeout()
    with pytest.raises(ProviderTimeout):
        await mirror.catch_up(account_id)
    source.post(account_id, *some(2, 23))
    source.refused.add("13")

    await mirror.catch_up(account_id)

    assert [cursor for _, cursor in source.asked[3:]] == [None, "13", None, "20", "15", "10", "5"]
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


async def test_a_history_that_is_still_being_read_is_not_shown_and_is_read_on(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(23))
    await mirror.store.add_newest(account_id, await source.page(account_id, None, soon()))
    reading = source.page
    held = asyncio.Event()

    async def held_pages(of_account: str, cursor: str | None, deadline: float) -> object:
        if cursor is not None:
            await held.wait()
        return await reading(of_account, cursor, deadline)

    source.page = held_pages  # type: ignore[method-assign, assignment]
    with pytest.raises(Unavailable, match="unavailable"):
        await mirror.catch_up(account_id, time.time() + 0.3)
    held.set()

    async def is_read() -> bool:
        assert await mirror.store.gap(account_id) is None
        return True

    await eventually("the history is read without a caller", is_read)
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


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
            newest = await source.page(of_account, None, deadline)
            assert await PostingStore(database).add_newest(of_account, newest)

    catching_up.catch_up = then_overtaken  # type: ignore[method-assign, assignment]
    pages: Any = MirroredPages(database)
    ledger = MirroredLedger(source, catching_up, pages, others=pages)  # nothing else is read

    found = await ledger.transactions(ListTransactions(account_id=account_id), soon())

    assert [row.transaction_id for row in found.rows] == newest_first(source.histories[account_id])
    assert (found.total, calls) == (19, 2)


async def test_callers_share_what_was_begun_after_they_asked(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(3))
    source.may_answer.clear()
    first = asyncio.create_task(mirror.catch_up(account_id))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    source.post(account_id, *some(1, 3))
    others = [asyncio.create_task(mirror.catch_up(account_id)) for _ in range(10)]
    await asyncio.sleep(0)
    source.may_answer.set()

    await asyncio.gather(first, *others)

    assert len(source.asked) == 2
    assert (await mirror.page(account_id))[1] == 4


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
    """Of a process that takes its time once between finding a gap and taking it."""

    def __init__(self, database: Database, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(database)
        self._meanwhile = [meanwhile]

    async def take(self, account_id: str, filler: uuid.UUID) -> bool:
        while self._meanwhile:
            await self._meanwhile.pop()()
        return await super().take(account_id, filler)


async def read_one_page(mirror: Mirror, account_id: str) -> None:
    filler = uuid.uuid4()
    assert await mirror.store.take(account_id, filler)
    gap = await mirror.store.gap(account_id)
    assert gap is not None
    page = await mirror.source.page(account_id, gap.cursor, soon())
    assert await mirror.store.fill(account_id, filler, gap, page)
    await mirror.store.release(account_id, filler)


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
    held, is_held, may_go = f"acc_{uuid.uuid4().hex}", asyncio.Event(), asyncio.Event()
    source.post(held, *some(12))
    source.post(account_id, *some(12))
    reading = source.page

    async def held_pages(of_account: str, cursor: str | None, deadline: float) -> object:
        if of_account == held and cursor is not None:
            is_held.set()
            await may_go.wait()
        return await reading(of_account, cursor, deadline)

    source.page = held_pages  # type: ignore[method-assign, assignment]
    first = asyncio.create_task(busy.catch_up(held))
    await is_held.wait()
    with pytest.raises(Unavailable):
        await busy.catch_up(account_id, time.time() + pace())

    await free.catch_up(account_id, time.time() + 5 * pace())

    assert (await free.page(account_id))[0] == newest_first(source.histories[account_id])
    may_go.set()
    await first


async def test_a_process_that_froze_is_replaced_and_writes_nothing_afterwards(
    mirror: Mirror, source: ScriptedSource, database: Database, account_id: str
) -> None:
    source.post(account_id, *some(12))
    frozen, page = uuid.uuid4(), await source.page(account_id, None, soon())
    await mirror.store.add_newest(account_id, page)
    assert await mirror.store.take(account_id, frozen)
    gap = await mirror.store.gap(account_id)
    assert gap is not None
    late = await source.page(account_id, gap.cursor, soon())
    async with database.driver() as connection:
        await connection.execute(
            "UPDATE posting_mirror SET filling_until = now() - interval '1 second' WHERE account_id = $1",
            account_id,
        )

    await mirror.catch_up(account_id)

    assert not await mirror.store.fill(account_id, frozen, gap, late)
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


async def test_pages_without_an_end_are_the_providers_error(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(12))
    reading = source.page

    async def endless(of_account: str, cursor: str | None, deadline: float) -> object:
        page = await reading(of_account, None, deadline)
        return type(page)(page.postings, "7")

    source.page = endless  # type: ignore[method-assign, assignment]
    with pytest.raises(ProviderError):
        await mirror.catch_up(account_id)


async def test_two_postings_with_one_id_of_ours_are_the_providers_error(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    first, second = some(2)
    source.post(account_id, first)
    await mirror.catch_up(account_id)
    object.__setattr__(second, "transaction_id", first.transaction_id)
    source.post(account_id, second)

    with pytest.raises(ProviderError):
        await mirror.catch_up(account_id)

    assert await mirror.page(account_id) == ([first.transaction_id], 1)


HOURS = st.integers(-60, 60)
"""Few, so that several postings have the same moment; around a change of the clocks, in any order."""
STEPS = st.lists(
    st.one_of(
        st.lists(HOURS, min_size=1, max_size=30).map(lambda hours: ("post", hours)),
        st.integers(1, 3).map(lambda call: ("fail", [call])),
        st.just(("read", [])),
    ),
    max_size=8,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS, limit=st.sampled_from([1, 4, 10, 100]), days=st.tuples(HOURS, HOURS))
async def test_pages_are_the_history_after_any_arrivals_and_failures(
    mirror: Mirror,
    source: ScriptedSource,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[str, list[int]]],
    limit: int,
    days: tuple[int, int],
) -> None:
    monkeypatch.setattr(store_module, "LARGEST_BLOCK", 6)
    account_id = f"acc_{uuid.uuid4().hex}"
    for step, numbers in steps:
        if step == "post":
            source.post(account_id, *(posting(at(hour)) for hour in numbers))
        elif step == "fail":
            source.failures[len(source.asked) + numbers[0]] = ProviderTimeout()
        else:
            try:
                await mirror.catch_up(account_id)
            except ProviderTimeout:
                continue
            assert (await mirror.page(account_id))[1] == len(source.histories[account_id])
    source.failures.clear()

    await mirror.catch_up(account_id)

    history = source.histories[account_id]
    assert await mirror.all_pages(account_id, limit) == newest_first(history)
    start, end = (at(hour).astimezone(BANK_ZONE).date() for hour in sorted(days))
    chosen = [one for one in history if start <= one.settled_at.astimezone(BANK_ZONE).date() <= end]
    ids, total = await mirror.within(account_id, start, end)
    assert (ids, total) == (newest_first(chosen)[:100], len(chosen))
