"""One process reads an account's history from the provider."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import uuid
from contextlib import AsyncExitStack

import pytest

from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.persistence.engine import Database
from services.ledger_read.mirror.store import PostingStore
from tests.integration.mirror.mirrors import (
    PAGE_SIZE,
    Mirror,
    at,
    newest_first,
    open_mirror,
    some,
    soon,
)
from tests.support.posting_source import ScriptedSource, posting, read_whole
from tests.support.waiting import eventually


async def named(database: Database, account_id: str) -> int:
    """How many postings of events wait for a reading."""
    async with database.driver() as connection:
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM posting_named WHERE account_id = $1", account_id
            )
        )


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


async def test_only_postings_that_are_not_mirrored_are_read_beyond_the_list(
    opened: AsyncExitStack,
    mirror: Mirror,
    source: ScriptedSource,
    database: Database,
    account_id: str,
) -> None:
    source.post(account_id, *some(23))
    await mirror.catch_up(account_id)
    source.post(account_id, *some(PAGE_SIZE + 2, 23))
    source.read.clear()

    # Of another process, such as one that was started anew.
    await (await open_mirror(opened, source, database)).catch_up(account_id)

    news = source.histories[account_id][23:]
    assert sorted(source.read) == sorted(one.provider_id for one in news)
    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 30)


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

    was_stored = [await mirror.store.add_named(account_id, one) for one in (late, late, newer)]
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
    assert await mirror.store.add_named(account_id, source.histories[account_id][18])

    await mirror.catch_up(account_id)

    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 28)


@pytest.mark.parametrize("earlier", [0, 3], ids=["the-first-page", "a-later-page"])
async def test_a_posting_whose_event_comes_while_a_page_without_it_is_read_is_not_missed(
    mirror: Mirror, source: ScriptedSource, account_id: str, earlier: int
) -> None:
    source.post(account_id, *some(earlier))
    if earlier:
        await mirror.catch_up(account_id)
    late, above = posting(at(10)), posting(at(11))
    source.post(account_id, above)
    asked = len(source.asked)
    source.may_answer.clear()
    reading = asyncio.create_task(mirror.catch_up(account_id))

    async def is_under_way() -> bool:
        return len(source.asked) > asked

    await eventually("the newest page is asked for", is_under_way)
    source.histories[account_id].insert(earlier, late)
    was_stored = await mirror.store.add_named(account_id, late)
    source.may_answer.set()
    await reading
    # So many that the one that was late is below the next newest page, which reaches a known one.
    source.post(account_id, *some(PAGE_SIZE - 1, 20))

    await mirror.catch_up(account_id)

    history = source.histories[account_id]
    assert not was_stored
    assert await mirror.page(account_id) == (newest_first(history), len(history))
    assert await mirror.store.gap(account_id) is None


async def test_a_posting_whose_event_comes_before_it_is_read_is_stored_once(
    mirror: Mirror, source: ScriptedSource, database: Database, account_id: str
) -> None:
    source.post(account_id, *some(3))
    await mirror.catch_up(account_id)
    source.post(account_id, *some(2, 3))
    for one in source.histories[account_id][3:]:
        assert not await mirror.store.add_named(account_id, one)
    waited = await named(database, account_id)

    await mirror.catch_up(account_id)

    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 5)
    assert (waited, await named(database, account_id)) == (2, 0)


async def test_a_posting_whose_event_comes_before_the_first_reading_is_stored_by_it(
    mirror: Mirror, source: ScriptedSource, database: Database, account_id: str
) -> None:
    late = posting(at(10))
    was_stored = await mirror.store.add_named(account_id, late)
    # The provider shows a newer one, and the late one after it was read.
    source.post(account_id, posting(at(11)))
    await mirror.catch_up(account_id)
    source.histories[account_id].insert(0, late)
    source.post(account_id, *some(PAGE_SIZE - 1, 20))

    await mirror.catch_up(account_id)

    history = source.histories[account_id]
    assert not was_stored
    assert await mirror.page(account_id) == (newest_first(history), len(history))
    assert await named(database, account_id) == 0


@pytest.mark.parametrize("is_read", [True, False], ids=["an-account-that-was-read", "another"])
async def test_postings_that_events_have_named_do_not_pile_up_where_an_account_is_not_read(
    mirror: Mirror,
    source: ScriptedSource,
    database: Database,
    account_id: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_read: bool,
) -> None:
    monkeypatch.setattr("services.ledger_read.mirror.store.DELETE_BATCH", 2)
    source.post(account_id, *some(3))
    if is_read:
        await mirror.catch_up(account_id)
    for one in some(5, 3):
        await mirror.store.add_named(account_id, one)

    await mirror.store.delete_old_named()
    young = await named(database, account_id)
    monkeypatch.setattr("services.ledger_read.mirror.store.NAMED_SECONDS", 0.0)
    await mirror.store.delete_old_named()

    assert (young, await named(database, account_id)) == (5, 0)


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


async def test_a_gap_that_is_opened_while_a_reading_ends_is_filled_as_well(
    mirror: Mirror, source: ScriptedSource, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ending, may_end = asyncio.Event(), asyncio.Event()

    released = PostingStore.release

    async def release(store: PostingStore, account_id: str, filler: uuid.UUID) -> None:
        await released(store, account_id, filler)
        is_ending.set()
        await may_end.wait()

    monkeypatch.setattr(PostingStore, "release", release)
    source.post(account_id, *some(8))
    first = asyncio.create_task(mirror.catch_up(account_id))
    await is_ending.wait()
    source.post(account_id, *some(12, 8))
    second = asyncio.create_task(mirror.catch_up(account_id))

    async def has_gap() -> bool:
        return await mirror.store.gap(account_id) is not None

    await eventually("the gap is opened", has_gap)
    may_end.set()
    await asyncio.gather(first, second)

    assert await mirror.store.gap(account_id) is None
    assert await mirror.page(account_id) == (newest_first(source.histories[account_id]), 20)


async def test_a_history_that_is_still_being_read_is_not_shown_and_is_read_on(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(23))
    newest = await source.page(account_id, None, soon())
    await mirror.store.add_newest(account_id, await read_whole(newest, soon()))
    held = source.hold_older(account_id)

    async def has_begun() -> bool:
        with pytest.raises(Unavailable, match="unavailable"):
            await mirror.catch_up(account_id, time.time() + 0.3)
        return held.is_asked.is_set()

    await eventually("the bank is asked before the caller's deadline", has_begun)
    held.may_answer.set()

    async def is_read() -> bool:
        assert await mirror.store.gap(account_id) is None
        return True

    await eventually("the history is read without a caller", is_read)
    assert (await mirror.page(account_id))[0] == newest_first(source.histories[account_id])


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


async def test_pages_without_an_end_are_the_providers_error(
    mirror: Mirror, source: ScriptedSource, account_id: str
) -> None:
    source.post(account_id, *some(12))
    reading = source.page

    async def endless(of_account: str, cursor: str | None, deadline: float) -> object:
        page = await reading(of_account, None, deadline)
        return dataclasses.replace(page, next_cursor="7")

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
