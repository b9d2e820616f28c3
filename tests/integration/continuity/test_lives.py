"""A database that went back is told by the newest records that a provider holds of ours."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, ProviderTimeout
from libs.contracts.operating.restores import CloseRestores, RestoreDecided
from libs.handling.operating.restores import Restores
from libs.persistence import continuity
from libs.persistence.continuity import Continuity
from libs.persistence.engine import Database, open_database
from tests.integration.continuity.lives import (
    A_DAY_OR_SO,
    TRANSIT_SECONDS,
    Bank,
    cases,
    close,
    first_seen,
    is_trusted,
    let_pass,
    lost_history_seconds,
    start_anew,
    start_long_ago,
)
from tests.support.answered_operators import OPERATOR
from tests.support.infrastructure import Environment
from tests.support.pace import pace

PAGE = (Path(__file__).parents[3] / "deploy" / "PRODUCTION.md").read_text()
[OPEN_CASE] = re.findall(r'-c "(INSERT INTO payments\.database_life .+)"', PAGE)


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


async def test_a_life_that_began_while_the_clock_was_ahead_is_checked_as_one_that_began_when_it_was_set(
    database: Database, check: Continuity, bank: Bank
) -> None:
    await start_anew(database)
    await let_pass(database, -5 * 3600)

    await check.check()
    too_early = (bank.pages_read, await lost_history_seconds(database) or 0)
    await let_pass(database, 2 * TRANSIT_SECONDS)
    *_, since = await first_seen(database)
    await check.check()

    pages_read, seconds = too_early
    assert pages_read == 0
    assert 0 <= seconds < TRANSIT_SECONDS
    assert await is_trusted(database)
    assert bank.trusted_until is not None
    assert bank.trusted_until <= since - timedelta(seconds=TRANSIT_SECONDS)


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
    await check.check()
    async with database.transaction() as connection:
        restored = f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}"
        await connection.execute(text(restored))

    async with database.transaction() as connection:
        await connection.exec_driver_sql(OPEN_CASE)
    await let_pass(database, 2 * TRANSIT_SECONDS)
    await check.check()

    assert not await is_trusted(database)
    assert await cases(database) == [["restored to 10:15 UTC"]]


async def test_the_statement_of_the_production_page_opens_the_case_also_where_payments_has_started(
    database: Database, check: Continuity
) -> None:
    await check.check()
    assert await is_trusted(database)

    async with database.transaction() as connection:
        await connection.exec_driver_sql(OPEN_CASE)

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
