"""A setback of the database's clock is noticed by its newest reading, and followed once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.persistence import clock_setbacks, inbox_acceptance, inbox_housekeeping, released_ddl
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Continuity
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import NewCommand
from tests.integration.continuity.lives import (
    A_DAY_OR_SO,
    TRANSIT_SECONDS,
    Bank,
    checking,
    is_trusted,
    let_pass,
    lost_history_seconds,
)
from tests.integration.continuity.test_comparing import WAITING_FOR_LOCKS
from tests.support.database_life import set_clock_back
from tests.support.pace import pace
from tests.support.waiting import eventually

HOURS = 3 * 3600.0


def setbacks() -> float:
    return REGISTRY.get_sample_value("bankside_database_clock_setbacks_total") or 0.0


async def fail_over(database: Database) -> None:
    """As if another server had taken over, which no process has seen yet."""
    async with database.transaction() as connection:
        await connection.execute(
            text(f"UPDATE database_life SET started_at = started_at - {A_DAY_OR_SO}")
        )


async def lost_history_began_seconds(database: Database) -> float:
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT lost_history_began_seconds()"))
        seconds: float = found.scalar_one()
        return seconds


@pytest.mark.parametrize("away_seconds", [0.0, 600.0])
async def test_what_a_server_with_a_clock_behind_may_lack_is_as_old_as_it_was(
    database: Database, check: Continuity, away_seconds: float
) -> None:
    await check.check()
    await set_clock_back(database, HOURS, away_seconds=away_seconds)
    await fail_over(database)

    await check.check()

    began = await lost_history_began_seconds(database)
    assert away_seconds <= began < away_seconds + 60 * pace()


async def test_a_life_of_a_server_with_a_clock_behind_is_checked_as_any_other(
    database: Database, check: Continuity, bank: Bank
) -> None:
    await check.check()
    await set_clock_back(database, HOURS)
    await fail_over(database)

    await check.check()
    too_early = await lost_history_seconds(database)
    await let_pass(database, 2 * TRANSIT_SECONDS)
    await check.check()

    assert too_early is not None
    assert 0 <= too_early < TRANSIT_SECONDS
    assert bank.pages_read == 2
    assert await is_trusted(database)


@pytest.mark.parametrize("life", ["the same", "another"])
async def test_processes_that_look_at_once_follow_a_setback_once_and_by_its_length(
    database: Database, bank: Bank, life: str
) -> None:
    followed: list[timedelta] = []

    async def date_back(_: AsyncConnection, setback: timedelta) -> None:
        followed.append(setback)

    await checking(database, bank).check()
    await set_clock_back(database, HOURS)
    if life == "another":
        await fail_over(database)
    before = setbacks()

    with capture_logs() as logs:
        await asyncio.gather(
            *(
                Continuity(
                    database, [], transit_seconds=TRANSIT_SECONDS, date_back=date_back
                ).check()
                for _ in range(4)
            )
        )

    [setback] = followed
    assert HOURS <= setback.total_seconds() < HOURS + 60 * pace()
    assert [line["event"] for line in logs].count("database_clock_set_back") == 1
    assert setbacks() == before + 1


@pytest.mark.parametrize(
    ("process_seconds", "reported"), [(0.0, (HOURS, False)), (HOURS, (HOURS - 600, True))]
)
async def test_a_setback_of_all_clocks_after_a_time_away_is_reported_as_the_least_it_can_be(
    database: Database, bank: Bank, process_seconds: float, reported: tuple[float, bool]
) -> None:
    await checking(database, bank).check()
    await set_clock_back(database, HOURS, away_seconds=600, process_seconds=process_seconds)

    with capture_logs() as logs:
        await checking(database, bank).check()

    [line] = [line for line in logs if line["event"] == "database_clock_set_back"]
    assert line["seconds"] == pytest.approx(reported[0], abs=60 * pace())
    assert line["at_least"] == reported[1]


async def test_a_clock_that_is_corrected_by_a_little_was_not_set_back(
    database: Database, bank: Bank
) -> None:
    await checking(database, bank).check()
    await set_clock_back(database, clock_setbacks.TOLERANCE.total_seconds() / 2)

    with capture_logs() as logs:
        await checking(database, bank).check()

    assert "database_clock_set_back" not in [line["event"] for line in logs]


async def postponed(database: Database, seconds: float) -> uuid.UUID:
    """An open command that is due after so much time."""
    accepting = NewCommand(
        command_id=uuid.uuid4(),
        operation="payments.send_wire",
        message_id=str(uuid.uuid4()),
        request_id=str(uuid.uuid4()),
        principal=b"{}",
        tenant="tenant",
        body=b"{}",
        body_hash=None,
        reply_to=None,
        deadline=time.time(),
    )
    async with database.transaction() as connection:
        await inbox_acceptance.accept(connection, accepting, None, lease=False)
        await connection.execute(
            text(
                "UPDATE inbox SET due_at = clock_timestamp() + make_interval(secs => :pause)"
                " WHERE command_id = :id"
            ),
            {"pause": seconds, "id": accepting.command_id},
        )
    return accepting.command_id


async def rests_for(database: Database, command_id: uuid.UUID) -> float:
    async with database.transaction() as connection:
        found = await connection.execute(
            text(
                "SELECT extract(epoch FROM due_at - clock_timestamp())::float8 FROM inbox"
                " WHERE command_id = :id"
            ),
            {"id": command_id},
        )
        return float(found.scalar_one())


async def test_commands_are_due_as_soon_as_they_would_have_been_and_held_ones_stay_held(
    database: Database, check: Continuity
) -> None:
    resting = await postponed(database, HOURS + 5)
    held = await postponed(database, HOURS + 24 * 3600)
    await check.check()
    await set_clock_back(database, HOURS)

    await check.check()

    assert await rests_for(database, resting) <= 5
    assert 0 <= 24 * 3600 - await rests_for(database, held) < 60 * pace()


def ends_after_one_batch() -> Callable[[AsyncConnection], Awaitable[bool]]:
    bring_forward, batches = clock_setbacks.bring_forward, iter([1])

    async def once(connection: AsyncConnection) -> bool:
        if next(batches, None) is None:
            raise ConnectionError
        return await bring_forward(connection)

    return once


async def test_what_a_process_leaves_of_them_as_it_ends_is_brought_forward_once(
    database: Database, check: Continuity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_housekeeping, "BROUGHT_FORWARD_AT_ONCE", 2)
    waits = [5.0, 3600.0, 7200.0, 24 * 3600.0, 48 * 3600.0]
    commands = [await postponed(database, HOURS + wait) for wait in waits]
    await check.check()
    await set_clock_back(database, HOURS)
    with monkeypatch.context() as ending, pytest.raises(ConnectionError):
        ending.setattr(clock_setbacks, "bring_forward", ends_after_one_batch())
        await check.check()

    await check.check()

    for command_id, wait in zip(commands, waits, strict=True):
        assert 0 <= wait - await rests_for(database, command_id) < 60 * pace()


async def test_a_command_whose_row_is_locked_is_brought_forward_once_it_is_free(
    database: Database, check: Continuity
) -> None:
    command_id = await postponed(database, HOURS + 5)
    await check.check()
    await set_clock_back(database, HOURS)

    async def is_waiting() -> bool:
        async with database.transaction() as connection:
            return bool((await connection.execute(text(WAITING_FOR_LOCKS))).scalar_one())

    async with database.transaction() as driver:
        lock = text("SELECT FROM inbox WHERE command_id = :id FOR NO KEY UPDATE")
        await driver.execute(lock, {"id": command_id})
        checking_it = asyncio.create_task(check.check())
        await eventually("the look waits for the lock", is_waiting)
    await checking_it

    assert await rests_for(database, command_id) <= 5


async def test_a_reading_of_an_earlier_server_far_ahead_is_no_setback_after_the_upgrade(
    database: Database, check: Continuity
) -> None:
    await check.check()
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "INSERT INTO database_life (started_at, last_seen_at, checked_at) VALUES"
                " (now() + interval '4 years', now() + interval '4 years', now())"
            )
        )
        await connection.execute(text(released_ddl.DATABASE_LIFE_READINGS[-1]))

    with capture_logs() as logs:
        await check.check()

    assert "database_clock_set_back" not in [line["event"] for line in logs]
