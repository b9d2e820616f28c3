"""A comparison goes on where it was, pass after pass, and among replicas."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.backoff import Backoff
from libs.contracts.errors import ProviderTimeout
from libs.persistence import continuity
from libs.persistence.continuity import Continuity, NewestRecords
from libs.persistence.engine import Database
from libs.providers.newest_records import NewestPage
from tests.integration.continuity.lives import (
    TRANSIT_SECONDS,
    Bank,
    cases,
    checking,
    close,
    is_trusted,
    start_long_ago,
)
from tests.support.waiting import eventually

LONG = Backoff(first_seconds=3600.0, longest_seconds=3600.0)
NONE = Backoff(first_seconds=0.0, longest_seconds=0.0)


@pytest.mark.parametrize(("pauses", "passes"), [(LONG, 1), (NONE, 3)])
async def test_a_pass_that_failed_is_followed_by_a_pause_in_which_the_life_is_looked_at(
    database: Database,
    check: Continuity,
    bank: Bank,
    monkeypatch: pytest.MonkeyPatch,
    pauses: Backoff,
    passes: int,
) -> None:
    monkeypatch.setattr(continuity, "PASSES", pauses)
    bank.away = True
    seen = [await last_seen_at(database)]

    for _ in range(3):
        with suppress(ProviderTimeout):
            await check.check()
        seen.append(await last_seen_at(database))

    assert bank.pages_read == passes
    assert seen == sorted(set(seen))


async def last_seen_at(database: Database) -> datetime:
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT max(last_seen_at) FROM database_life"))
        at: datetime = found.scalar_one()
        return at


@pytest.fixture
def halfway(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Bank:
    """Its third page, of five, gets no answer; the first has a record that the database lacks."""
    monkeypatch.setattr(continuity, "PASSES", NONE)
    bank.holds = ["w_1", "w_2", "w_3", "w_4", "lost"]
    bank.known = {"w_1", "w_2", "w_3", "w_4"}
    bank.page, bank.away_after = 1, "2"
    return bank


async def test_a_pass_goes_on_where_the_one_before_failed(
    database: Database, check: Continuity, halfway: Bank
) -> None:
    with pytest.raises(ProviderTimeout):
        await check.check()
    halfway.away_after = None

    await check.check()

    assert halfway.asked == [None, "1", "2", "2", "3", "4"]
    assert await cases(database) == [["bank: lost"]]


async def test_a_pass_goes_on_where_the_one_before_had_read_all_that_one_pass_reads(
    database: Database, check: Continuity, halfway: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "PAGES", 2)
    halfway.away_after = None

    for _ in range(2):
        await check.check()
    unchecked = await cases(database)
    await check.check()

    assert halfway.asked == [None, "1", "2", "3", "4"]
    assert (unchecked, await cases(database)) == ([], [["bank: lost"]])


async def test_providers_that_were_compared_are_not_read_again_while_another_is_away(
    database: Database, halfway: Bank
) -> None:
    first = Bank(holds=["x_1"], provider="first")
    sources = [NewestRecords(one.provider, one.fetch, one.compare) for one in (first, halfway)]
    both = Continuity(database, sources, transit_seconds=TRANSIT_SECONDS)
    with pytest.raises(ProviderTimeout):
        await both.check()
    halfway.away_after = None

    await both.check()

    assert first.pages_read == 1
    assert [sorted(case) for case in await cases(database)] == [["bank: lost", "first: x_1"]]


async def test_another_life_is_compared_from_its_beginning_and_at_once(
    database: Database, check: Continuity, halfway: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "PASSES", LONG)
    with pytest.raises(ProviderTimeout):
        await check.check()
    await start_long_ago(database)
    halfway.away_after = None

    await check.check()

    assert halfway.asked[3:] == [None, "1", "2", "3", "4"]


async def test_what_was_compared_before_a_restore_was_declared_is_compared_again(
    database: Database, check: Continuity, halfway: Bank
) -> None:
    with pytest.raises(ProviderTimeout):
        await check.check()
    async with database.transaction() as connection:
        await continuity.declare(connection, "ada: restored by hand")
    halfway.away_after, halfway.known = None, {"w_1", "w_2", "w_3"}

    await check.check()

    assert halfway.asked[3:] == [None, "1", "2", "3", "4"]
    [case] = await cases(database)
    assert sorted(case) == ["ada: restored by hand", "bank: lost", "bank: w_4"]


@dataclass
class RestoredMeanwhile(Bank):
    """Behind the first page that is read there, where w_1 is missing, the database loses w_3, and an operator declares
    that.
    """

    database: Database | None = None

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        if after == "1" and self.database is not None:
            async with self.database.transaction() as connection:
                await continuity.declare(connection, "ada: restored by hand")
            self.database = None
            self.known.discard("w_3")
        return await super().fetch(after, limit)


@pytest.mark.parametrize("also_of_another_replica", [False, True])
async def test_a_restore_that_is_declared_while_a_pass_reads_is_compared_anew(
    database: Database, also_of_another_replica: bool
) -> None:
    bank = RestoredMeanwhile(["w_1", "w_2", "w_3"], {"w_2", "w_3"}, page=1)
    bank.database = database
    check = checking(database, bank)
    await check.check()
    declared = await cases(database)
    await close(database)
    is_trusted_at_once = await is_trusted(database)

    await (checking(database, bank) if also_of_another_replica else check).check()

    assert (declared, is_trusted_at_once) == ([["ada: restored by hand", "bank: w_1"]], False)
    assert await cases(database) == [["ada: restored by hand", "bank: w_1", "bank: w_3"]]


async def test_a_place_that_a_provider_does_not_know_any_more_is_given_up(
    database: Database, check: Continuity, halfway: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "PLACE_TRIES", 2)
    for _ in range(3):
        with pytest.raises(ProviderTimeout):
            await check.check()
    halfway.page = 3

    await check.check()

    assert halfway.asked == [None, "1", "2", "2", "2", None, "3"]
    assert await cases(database) == [["bank: lost"]]


@pytest.mark.parametrize(
    ("first", "last"), [(["w_1"], []), ([], ["w_1"])], ids=["first finds it", "last finds it"]
)
async def test_what_either_of_two_replicas_finds_missing_is_kept(
    database: Database, first: list[str], last: list[str]
) -> None:
    """One has its list just before the record arrives, the other just after; both record what they found."""
    other = Bank(holds=first)

    class Slow(Bank):
        async def fetch(self, after: str | None, limit: int) -> NewestPage:
            page = await super().fetch(after, limit)
            await checking(database, other).check()
            return page

    await checking(database, Slow(holds=last)).check()

    assert await cases(database) == [["bank: w_1"]]


async def test_what_two_replicas_find_missing_at_once_is_recorded_and_told_once(
    database: Database,
) -> None:
    comparing: list[str | None] = []
    compared = asyncio.Event()

    class Held(Bank):
        async def fetch(self, after: str | None, limit: int) -> NewestPage:
            comparing.append(after)
            await compared.wait()
            return await super().fetch(after, limit)

    async def both_compare() -> bool:
        return len(comparing) == 2

    async def both_wait() -> bool:
        async with database.transaction() as connection:
            waiting = await connection.execute(text(WAITING_FOR_LOCKS))
            return bool(waiting.scalar_one() == 2)

    with capture_logs() as logs:
        checks = [
            asyncio.create_task(checking(database, Held(holds=["w_1"])).check()) for _ in range(2)
        ]
        await eventually("both replicas compare", both_compare)
        async with database.transaction() as connection:
            await connection.execute(text("SELECT FROM database_life FOR UPDATE"))
            compared.set()
            await eventually("both replicas are about to record", both_wait)
        await asyncio.gather(*checks)

    assert await cases(database) == [["bank: w_1"]]
    assert [line["event"] for line in logs].count("database_went_back") == 1


WAITING_FOR_LOCKS = """
    SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
    """


async def test_another_server_that_took_over_meanwhile_is_compared_by_itself(
    database: Database,
) -> None:
    class Overtaken(Bank):
        async def fetch(self, after: str | None, limit: int) -> NewestPage:
            async with database.transaction() as connection:
                await connection.execute(text("DELETE FROM database_life"))
            return NewestPage([], None)

    await checking(database, Overtaken()).check()

    assert not await is_trusted(database)
