"""A database that went back is told by the newest records that a provider holds of ours."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.backoff import Backoff
from libs.contracts.errors import InvalidState, ProviderTimeout, Unavailable
from libs.contracts.operating.audit import ListAudit
from libs.contracts.operating.overview import (
    OVERVIEW_OF,
    GetOverview,
    ServiceOverview,
    WaitingKind,
)
from libs.contracts.operating.restores import CloseRestores, RestoreDecided
from libs.handling.operating.audit_rows import AuditRows
from libs.handling.operating.restores import Restores
from libs.handling.operating.serving import operating_handlers
from libs.persistence import continuity
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Compared, Continuity, NewestRecords
from libs.persistence.engine import Database, open_database
from libs.persistence.lost_history import has_lost_history
from libs.providers.newest_records import NewestPage
from tests.support.answered_operators import OPERATOR, AnsweredOperators
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

TRANSIT_SECONDS = 60.0


@dataclass
class Bank:
    """Holds records of ours, of which the database knows some, the oldest first; gives them out `page` at a time."""

    holds: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    older_than_the_life: set[str] = field(default_factory=set)
    page: int = 500
    trusted_until: datetime | None = None
    """What the last page was compared with."""
    away: bool = False
    away_after: str | None = None
    """The page that begins there, and no other, gets no answer."""
    asked: list[str | None] = field(default_factory=list)
    provider: str = "bank"

    @property
    def pages_read(self) -> int:
        return len(self.asked)

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        self.asked.append(after)
        if self.away or (after is not None and after == self.away_after):
            raise ProviderTimeout
        newest = list(reversed(self.holds))
        begin = int(after or 0)
        end = begin + min(limit, self.page)
        return NewestPage(newest[begin:end], str(end) if end < len(newest) else None)

    async def compare(
        self, _: AsyncConnection, ids: Sequence[str], trusted_until: datetime
    ) -> Compared:
        self.trusted_until = trusted_until
        return Compared(
            missing=[each for each in ids if each not in self.known],
            reaches_back=any(each in self.older_than_the_life for each in ids),
        )


@pytest.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    """Of payments; its present life is not checked, and began long ago."""
    opened = open_database(fresh_environment.database_urls["payments"], "tests")
    await start_long_ago(opened)
    yield opened
    await opened.close()


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def check(database: Database, bank: Bank) -> Continuity:
    return checking(database, bank)


A_DAY_OR_SO = "make_interval(days => 1, secs => random() * 600)"
"""Never the same: a life must not be moved to where another one stands."""


def checking(
    database: Database, bank: Bank, went_back: Callable[[], Awaitable[None]] | None = None
) -> Continuity:
    source = NewestRecords(bank.provider, bank.fetch, bank.compare)
    return Continuity(database, [source], transit_seconds=TRANSIT_SECONDS, went_back=went_back)


async def start_anew(database: Database) -> None:
    """As if the server had been started again and a service had seen that: the lives that are known lie in the past."""
    async with database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}")
        )
        await connection.execute(
            text("INSERT INTO database_life (started_at) VALUES (pg_postmaster_start_time())")
        )


async def let_pass(database: Database, seconds: float) -> None:
    """As if so much time had passed since the present life was first seen."""
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE database_life SET first_seen_at = first_seen_at - make_interval(secs => :seconds)"
            ),
            {"seconds": seconds},
        )


async def start_long_ago(database: Database) -> None:
    """As `start_anew`; nothing that was sent before that start is still on its way."""
    await start_anew(database)
    await let_pass(database, 2 * TRANSIT_SECONDS)


async def let_a_claim_pass(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("UPDATE database_life SET report_due_at = clock_timestamp()"))


async def lost_history_seconds(database: Database) -> float | None:
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT lost_history_seconds()"))
        seconds: float | None = found.scalar_one()
        return seconds


async def is_trusted(database: Database) -> bool:
    return await lost_history_seconds(database) is None


async def cases(database: Database) -> list[list[str]]:
    async with database.transaction() as connection:
        return [list(case.missing_records) for case in await continuity.open_cases(connection)]


async def close(database: Database) -> int:
    async with database.transaction() as connection:
        closed = await continuity.close(connection, by="ada", reason="The wire is explained.")
        return len(closed)


async def first_seen(database: Database) -> list[datetime]:
    """Of the lives that are not checked, the oldest first."""
    async with database.transaction() as connection:
        found = await connection.execute(
            text("SELECT first_seen_at FROM database_life WHERE checked_at IS NULL ORDER BY 1")
        )
        return list(found.scalars())


async def test_what_was_written_since_the_last_checked_life_proves_nothing(
    database: Database, bank: Bank, check: Continuity
) -> None:
    bank.holds = ["wire"]
    bank.known = {"wire"}
    await start_long_ago(database)
    doubted, present = await first_seen(database)

    await check.check()
    since_both = bank.trusted_until
    await start_long_ago(database)
    *_, newest = await first_seen(database)
    await check.check()

    transit = timedelta(seconds=TRANSIT_SECONDS)
    assert doubted < present
    assert since_both == doubted - transit
    assert bank.trusted_until == newest - transit, "the life before it was checked"


async def test_a_database_that_was_just_made_is_trusted(fresh_environment: Environment) -> None:
    database = open_database(fresh_environment.database_urls["payments"], "tests")

    trusted = await is_trusted(database)

    await database.close()
    assert trusted


async def test_a_life_is_not_trusted_before_it_was_checked(
    database: Database, check: Continuity
) -> None:
    before = await is_trusted(database)

    await check.check()

    assert (before, await is_trusted(database)) == (False, True)


async def test_a_life_that_no_service_has_seen_yet_began_now(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(text("DELETE FROM database_life"))

    assert await lost_history_seconds(database) == 0


async def test_what_a_life_may_lack_is_no_older_than_the_life_before_also_while_nobody_has_seen_it(
    database: Database, check: Continuity
) -> None:
    await check.check()
    async with database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}")
        )
        unseen = await connection.execute(text("SELECT lost_history_began_seconds()"))
        began_seconds = unseen.scalar_one()

    assert 0 <= began_seconds < 60 * pace()


async def test_a_life_is_not_compared_while_earlier_writes_may_be_on_their_way(
    database: Database, check: Continuity, bank: Bank
) -> None:
    await start_anew(database)

    await check.check()

    assert bank.pages_read == 0
    assert (await lost_history_seconds(database) or 0) < TRANSIT_SECONDS


async def test_a_life_is_checked_once(check: Continuity, bank: Bank) -> None:
    for _ in range(3):
        await check.check()

    assert bank.pages_read == 1


async def test_a_database_that_knows_what_the_bank_holds_is_trusted(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds, bank.known = ["w_1", "w_2"], {"w_1", "w_2", "never sent"}

    await check.check()

    assert await is_trusted(database)


async def test_a_database_that_lacks_a_record_of_the_bank_went_back(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds, bank.known = ["w_1", "w_2"], {"w_1"}

    await check.check()

    assert not await is_trusted(database)
    assert await cases(database) == [["bank: w_2"]]


async def test_what_is_missing_is_found_behind_all_that_was_sent_since(
    database: Database, check: Continuity, bank: Bank
) -> None:
    since = [f"w_{number}" for number in range(10)]
    bank.holds = ["old", "lost", *since]
    bank.known, bank.older_than_the_life = {"old", *since}, {"old"}
    bank.page = 3

    await check.check()

    assert await cases(database) == [["bank: lost"]]


async def test_no_more_is_read_than_back_to_a_record_that_is_older_than_the_life(
    check: Continuity, bank: Bank
) -> None:
    bank.holds = [f"w_{number}" for number in range(100)]
    bank.known, bank.older_than_the_life = set(bank.holds), {"w_97"}
    bank.page = 2

    await check.check()

    assert bank.pages_read == 2


async def test_a_database_that_went_back_is_not_trusted_after_another_start(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    await check.check()
    await start_long_ago(database)
    bank.known = {"w_1"}

    await check.check()

    assert not await is_trusted(database)


async def test_cases_with_more_than_the_operator_has_seen_stay_open(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    await check.check()
    await start_long_ago(database)
    bank.holds = ["w_1", "w_2", "w_3"]
    await check.check()
    restores = Restores("payments", database)
    seen = CloseRestores(reason="The wire is explained.", missing=1)

    with pytest.raises(InvalidState):
        await restores.close(OPERATOR, seen, 0.0)
    opened = await cases(database)
    missing = sum(map(len, opened))
    closed = await restores.close(OPERATOR, seen.model_copy(update={"missing": missing}), 0.0)

    assert len(opened) == 2
    assert closed.data == RestoreDecided(service="payments", closed=2)
    assert await cases(database) == []


async def test_an_operator_closes_the_case_of_what_was_missing_and_of_nothing_that_is_missing_later(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    await check.check()
    assert await close(database) == 1
    closed = await is_trusted(database)
    await start_long_ago(database)
    await check.check()
    again = await is_trusted(database)
    await start_long_ago(database)
    bank.holds = ["w_1", "w_2"]

    await check.check()

    assert (closed, again) == (True, True)
    assert await cases(database) == [["bank: w_2"]]


async def test_an_operator_who_declares_a_restore_has_the_database_compared_all_the_same(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    async with database.transaction() as connection:
        await continuity.declare(connection, "ada: restored by hand")

    await check.check()

    assert not await is_trusted(database)
    assert await cases(database) == [["ada: restored by hand", "bank: w_1"]]


async def test_the_statement_of_the_production_page_opens_a_case_before_payments_starts(
    database: Database, check: Continuity
) -> None:
    page = (Path(__file__).parents[2] / "deploy" / "PRODUCTION.md").read_text()
    [statement] = re.findall(r'-c "(INSERT INTO payments\.database_life .+)"', page)
    await check.check()
    async with database.transaction() as connection:
        restored = f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}"
        await connection.execute(text(restored))

    async with database.transaction() as connection:
        await connection.exec_driver_sql(statement)
    await let_pass(database, 2 * TRANSIT_SECONDS)
    await check.check()

    assert not await is_trusted(database)
    assert await cases(database) == [["restored to 10:15 UTC"]]


async def test_a_declared_restore_is_not_trusted_before_it_is_compared_and_closed(
    database: Database, check: Continuity
) -> None:
    await check.check()
    async with database.transaction() as connection:
        await continuity.declare(connection, "ada: restored by hand")

    declared = await is_trusted(database)
    await close(database)
    not_compared = await is_trusted(database)
    await check.check()

    assert (declared, not_compared, await is_trusted(database)) == (False, False, True)


async def test_a_bank_that_cannot_be_asked_leaves_the_life_unchecked(
    database: Database, check: Continuity, bank: Bank
) -> None:
    bank.away = True

    with pytest.raises(ProviderTimeout):
        await check.check()

    assert not await is_trusted(database)


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


async def test_a_case_is_reported_by_another_process_when_the_one_that_opened_it_ended(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    told: list[bool] = []

    async def ended() -> None:
        raise asyncio.CancelledError

    async def went_back() -> None:
        told.append(True)

    with pytest.raises(asyncio.CancelledError):
        await checking(database, bank, ended).check()
    other = checking(database, bank, went_back)

    await other.check()
    assert told == []
    await let_a_claim_pass(database)
    await start_anew(database)
    await other.check()
    await other.check()

    assert told == [True]


async def test_a_report_that_fails_is_logged_as_that_and_repeated(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    answers: list[Exception | None] = [Unavailable(), None]

    async def went_back() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    check = checking(database, bank, went_back)
    with capture_logs() as logs:
        await check.check()
    await check.check()
    before_the_claim_passed = len(answers)
    await let_a_claim_pass(database)

    await check.check()
    await check.check()

    failed = [line for line in logs if line["event"] == "restore_not_reported"]
    assert [line["error"] for line in failed] == ["unavailable"]
    assert (before_the_claim_passed, answers) == (1, [])


async def test_processes_that_see_a_case_at_once_report_it_once(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    await checking(database, bank).check()
    told: list[bool] = []

    async def went_back() -> None:
        told.append(True)

    await asyncio.gather(*(checking(database, bank, went_back).check() for _ in range(4)))

    assert told == [True]


async def test_a_case_is_told_of_once(database: Database, bank: Bank) -> None:
    bank.holds = ["w_1"]
    told: list[bool] = []

    async def went_back() -> None:
        told.append(True)

    check = checking(database, bank, went_back)

    await check.check()
    await check.check()

    assert told == [True]


async def test_what_waits_for_a_check_is_told_of_one_that_finds_nothing_missing(
    database: Database, bank: Bank
) -> None:
    told: list[bool] = []

    async def on_checked(connection: AsyncConnection) -> None:
        told.append(await has_lost_history(connection))

    source = NewestRecords(bank.provider, bank.fetch, bank.compare)
    check = Continuity(database, [source], transit_seconds=TRANSIT_SECONDS, on_checked=on_checked)
    await check.check()
    await check.check()
    await start_long_ago(database)
    bank.holds = ["w_1"]

    await check.check()

    assert told == [False]


async def test_operators_declare_list_and_close_a_restore_by_the_command_line(
    fresh_environment: Environment, database: Database, check: Continuity
) -> None:
    services = ("onboarding", "payments")
    operator = AnsweredOperators(
        fresh_environment, {one: partial(operating_handlers, one) for one in services}
    )
    overview = OVERVIEW_OF["payments"].name
    await check.check()

    nothing = await operator.run("restores", "close", "payments", "--reason", "x")
    await operator.command("restores", "declare", "payments", "--reason", "Back to noon.")
    listed = await operator.command("restores", "list")
    shown = await operator.run("restores", "list")
    waiting = (
        await operating_handlers("payments", database)[overview](OPERATOR, GetOverview(), 0)
    ).data
    await operator.command("restores", "close", "payments", "--reason", "All explained.")
    afterwards = await operator.command("restores", "list")

    assert (nothing.status, "Nothing is missing" in nothing.err) == (2, True)
    [case] = listed["payments"]
    assert case["missing_records"] == ["operator:grace: Back to noon."]
    assert listed["onboarding"] == []
    assert "onboarding: nothing is missing" in shown.out
    assert isinstance(waiting, ServiceOverview)
    assert [(one.kind, one.count) for one in waiting.waiting] == [(WaitingKind.RESTORES, 1)]
    assert afterwards == {"onboarding": [], "payments": []}
    rows = AuditRows("payments", database)
    audited: Any = (await rows.list(OPERATOR, ListAudit(actor="operator:grace"), 0)).data
    assert [json.loads(row.entry)["action"] for row in audited.items] == [
        "restores.close",
        "restores.declare",
    ]
