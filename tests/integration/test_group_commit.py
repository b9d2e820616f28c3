"""Commands that are recorded and finished together: what becomes of each is what becomes of it alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.handling.acceptance import Recorded, recording
from libs.handling.group_commit import GROUP, GroupCommit, Write
from libs.handling.running import finishing
from libs.persistence import forgetting, inbox
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from libs.persistence.leased_writes import LeasedValue
from tests.integration.tables import finish as finish_one
from tests.integration.test_inbox_forgotten import arriving
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually

LEASE_SECONDS = 60.0


def of(write: Write[Any, Any], groups: list[int]) -> Write[Any, Any]:
    """The same write; the sizes of its groups are noted."""

    async def together(connection: asyncpg.Connection, items: Sequence[Any]) -> Mapping[UUID, Any]:
        groups.append(len(items))
        return await write.together(connection, items)

    return Write(write.name, together, write.alone)


async def record(database: Database, *commands: NewCommand) -> tuple[list[Recorded], list[int]]:
    """What is known of each, and how many went together."""
    groups: list[int] = []
    write = of(recording(LEASE_SECONDS), groups)
    commit = GroupCommit(database)
    known = await asyncio.gather(*(commit.commit(write, command) for command in commands))
    return known, groups


async def leased(database: Database, count: int) -> list[inbox.Leased]:
    known, _ = await record(database, *(arriving(uuid4(), "message") for _ in range(count)))
    commands = [command for command in known if isinstance(command, inbox.Leased)]
    assert len(commands) == count
    return commands


async def replies(database: Database) -> dict[UUID, bytes | None]:
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT command_id, reply FROM inbox"))
        return {row.command_id: row.reply for row in found}


async def test_a_crowd_is_recorded_in_few_groups_each_command_under_a_lease_of_its_own(
    database: Database,
) -> None:
    commands = [arriving(uuid4(), f"message {number}") for number in range(GROUP + 8)]

    known, groups = await record(database, *commands)

    taken = [one for one in known if isinstance(one, inbox.Leased)]
    assert groups == [GROUP, 8]
    assert [(one.command_id, one.message_id) for one in taken] == [
        (command.command_id, command.message_id) for command in commands
    ]
    async with database.driver() as connection:
        assert await inbox.renew(connection, taken) == {c.command_id for c in commands}


async def test_those_that_have_a_place_are_leased_and_the_others_are_due(
    database: Database,
) -> None:
    placed = [arriving(uuid4(), "message") for _ in range(2)]
    others = [replace(arriving(uuid4(), "message"), has_place=False) for _ in range(3)]

    known, _ = await record(database, others[0], *placed, *others[1:])

    async with database.driver() as connection:
        claimed = await inbox.claim(connection, len(others))
    assert [type(one) for one in known] == [type(None), *[inbox.Leased] * 2, *[type(None)] * 2]
    assert {one.command_id for one in claimed} == {one.command_id for one in others}


async def test_of_one_id_twice_in_a_group_the_first_is_recorded(database: Database) -> None:
    command_id = uuid4()
    first, redelivered = arriving(command_id, "first"), arriving(command_id, "first")
    second = arriving(command_id, "second", body_hash="other")

    known, groups = await record(
        database, arriving(uuid4(), "x"), first, redelivered, second, arriving(uuid4(), "y")
    )

    assert groups == [3]
    assert [type(one) for one in known] == [
        *(inbox.Leased, inbox.Leased),
        *(KnownCommand, KnownCommand, inbox.Leased),
    ]
    assert known[2:4] == [
        KnownCommand(True, "hash", b"{}", None),
        KnownCommand(False, "hash", b"{}", None),
    ]


async def test_what_is_there_already_amid_a_group_is_told_as_it_is(database: Database) -> None:
    open_one, finished, forgotten = await leased(database, 3)
    await finish_one(database, finished, b"reply")
    async with inbox.fenced(database, forgotten) as connection:
        await forgetting.forget(connection, forgotten)

    known, groups = await record(
        database,
        arriving(uuid4(), "message"),
        arriving(open_one.command_id, "message"),
        arriving(finished.command_id, "another"),
        arriving(forgotten.command_id, "message"),
        arriving(uuid4(), "message"),
    )
    (begun_anew,), _ = await record(database, arriving(forgotten.command_id, "another"))

    assert groups == [5]
    assert known[1:4] == [
        KnownCommand(True, "hash", b"{}", None),
        KnownCommand(False, "hash", b"", b"reply"),
        KnownCommand(True, None, b"", None),
    ]
    assert isinstance(known[0], inbox.Leased)
    assert isinstance(known[4], inbox.Leased)
    assert isinstance(begun_anew, inbox.Leased)
    assert (begun_anew.message_id, begun_anew.attempts) == ("another", 1)


async def test_a_request_that_was_refused_is_left_out_by_a_group_after_its_command_was_forgotten(
    database: Database,
) -> None:
    (command,) = await leased(database, 1)
    second = arriving(command.command_id, "second")
    (refused,), _ = await record(database, second)
    async with inbox.fenced(database, command) as connection:
        await forgetting.forget(connection, command)

    (redelivered, beside), groups = await record(database, second, arriving(uuid4(), "message"))

    assert refused == KnownCommand(False, "hash", b"{}", None)
    assert redelivered == KnownCommand(True, None, b"", None)
    assert isinstance(beside, inbox.Leased)
    assert groups == [2]


async def test_a_command_that_cannot_be_recorded_fails_alone(database: Database) -> None:
    good = [arriving(uuid4(), "message") for _ in range(4)]
    bad = replace(arriving(uuid4(), "message"), operation="\0")
    commit, write = GroupCommit(database), recording(LEASE_SECONDS)

    outcomes = await asyncio.gather(
        *(commit.commit(write, one) for one in (*good[:2], bad, *good[2:])), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes].count(inbox.Leased) == 4
    assert isinstance(outcomes[2], DBAPIError)
    assert not is_away(outcomes[2])
    assert set(await replies(database)) == {command.command_id for command in good}


async def test_one_that_gives_up_takes_no_other_along(database: Database) -> None:
    commit, write = GroupCommit(database), recording(LEASE_SECONDS)
    waits = [
        asyncio.create_task(commit.commit(write, arriving(uuid4(), "message"))) for _ in range(3)
    ]
    await asyncio.sleep(0)
    waits[1].cancel()

    outcomes = await asyncio.gather(*waits, return_exceptions=True)

    assert isinstance(outcomes[0], inbox.Leased)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert isinstance(outcomes[2], inbox.Leased)


FINISHING = finishing(frozenset())


async def finish(database: Database, *commands: inbox.Leased) -> list[BaseException | None]:
    commit = GroupCommit(database)
    return await asyncio.gather(
        *(commit.commit(FINISHING, LeasedValue(command, b"reply")) for command in commands),
        return_exceptions=True,
    )


async def test_a_lease_that_was_lost_amid_a_group_ends_that_command_alone(
    database: Database,
) -> None:
    commands = await leased(database, 4)
    stranger = replace(commands[1], lease=uuid4())
    await finish_one(database, commands[2], b"earlier")

    outcomes = await finish(database, commands[0], stranger, commands[2], commands[3])

    assert [type(outcome) for outcome in outcomes] == [
        *(type(None), inbox.LeaseLost),
        *(inbox.LeaseLost, type(None)),
    ]
    assert await replies(database) == {
        commands[0].command_id: b"reply",
        commands[1].command_id: None,
        commands[2].command_id: b"earlier",
        commands[3].command_id: b"reply",
    }


async def test_a_command_that_somebody_has_locked_is_waited_for_by_itself_alone(
    database: Database,
) -> None:
    commands = await leased(database, 3)

    async with inbox.fenced(database, commands[1]) as connection:
        ending = asyncio.create_task(finish(database, *commands))

        async def others_are_finished() -> bool:
            return list((await replies(database)).values()).count(b"reply") == 2

        await eventually("its neighbours are finished", others_are_finished)
        assert not ending.done()
        await inbox.postpone(connection, commands[1], seconds=60, error="of the test")

    assert [type(outcome) for outcome in await ending] == [
        *(type(None), inbox.LeaseLost, type(None)),
    ]


_RAISE = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = current_setting('test.sqlstate'); END $$"


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DeadlockDetectedError,
        asyncpg.SerializationError,
        asyncpg.LockNotAvailableError,
        asyncpg.QueryCanceledError,
    ],
)
async def test_writes_of_a_group_that_the_server_rolled_back_are_made_one_by_one(
    database: Database, error: type[asyncpg.PostgresError]
) -> None:
    commands = await leased(database, 3)

    async def together(
        connection: asyncpg.Connection, items: Sequence[LeasedValue[bytes]]
    ) -> Mapping[UUID, None]:
        async with connection.transaction():
            finished = await FINISHING.together(connection, items)
            await connection.execute("SELECT set_config('test.sqlstate', $1, true)", error.sqlstate)
            await connection.execute(_RAISE)
        return finished

    commit, write = GroupCommit(database), Write(FINISHING.name, together, FINISHING.alone)
    outcomes = await asyncio.gather(
        *(commit.commit(write, LeasedValue(command, b"reply")) for command in commands),
        return_exceptions=True,
    )

    assert outcomes == [None] * 3
    assert await replies(database) == {command.command_id: b"reply" for command in commands}


async def test_a_database_that_is_away_is_told_to_all_of_a_group(
    fresh_environment: Environment, database: Database
) -> None:
    commands = await leased(database, 3)
    onlooker = await asyncpg.connect(fresh_environment.database_urls["onboarding"])
    try:
        async with onlooker.transaction():
            await onlooker.execute("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE")
            ending = asyncio.create_task(finish(database, *commands))

            async def ended() -> bool:
                return bool(
                    await onlooker.fetchval(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                    )
                )

            await eventually("their connection is ended", ended)
            outcomes = await ending
        again = await finish(database, *commands)
    finally:
        await onlooker.close()

    assert all(isinstance(outcome, Exception) and is_away(outcome) for outcome in outcomes)
    assert again == [None] * 3
