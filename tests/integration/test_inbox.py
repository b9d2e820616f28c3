"""The commands of a service in its table: recorded once, leased to one driver, kept for as long as they must be."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.handling import housekeeping
from libs.messaging.envelope import encode
from libs.persistence import (
    forgetting,
    inbox,
    inbox_acceptance,
    inbox_housekeeping,
    leased_writes,
    parking,
)
from libs.persistence.availability import is_away
from libs.persistence.engine import Database
from libs.persistence.idle_locks import LOCKED_IDLE_SECONDS
from libs.persistence.inbox_acceptance import InternalCommand, KnownCommand, NewCommand
from tests.integration.gateway.desk import until
from tests.integration.tables import audit_finished, execute, rows
from tests.support.pace import pace

ENDED = (DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a statement raises whose transaction the server has ended, by how far the connection has noticed it."""
TURNS = 4
LASTING_SECONDS = inbox.LONGEST_LEASE_SECONDS
"""Of a lease that ends when the test says so, not while a slow machine carries it out."""
PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")


def accepting(command_id: uuid.UUID | None = None, *, tenant: str = PRINCIPAL.tenant) -> NewCommand:
    return NewCommand(
        command_id=command_id or uuid.uuid4(),
        operation=UPDATE_PERSON.name,
        message_id=str(uuid.uuid4()),
        request_id="request",
        principal=encode(PRINCIPAL),
        tenant=tenant,
        body=b"{}",
        body_hash="hash",
        reply_to=None,
        deadline=0.0,
    )


async def leased(database: Database, key: str | None = None) -> inbox.Leased:
    async with database.transaction() as connection:
        taken = await inbox_acceptance.accept(
            connection, accepting(), key, lease=True, lease_seconds=LASTING_SECONDS
        )
    assert isinstance(taken, inbox.Leased)
    return taken


async def claimed(database: Database) -> list[uuid.UUID]:
    async with database.driver() as connection:
        found = await inbox.claim(connection, 10, LASTING_SECONDS)
    return [command.command_id for command in found]


async def let_leases_run_out(database: Database) -> None:
    await execute(database, "UPDATE inbox SET lease_until = now() - interval '1 second'")


async def test_a_driver_that_was_replaced_can_commit_nothing_more(database: Database) -> None:
    stalled = await leased(database)
    await let_leases_run_out(database)
    assert await claimed(database) == [stalled.command_id]

    with pytest.raises(inbox.LeaseLost):
        async with inbox.fenced(database, stalled) as connection:
            await inbox.postpone(connection, stalled, seconds=0, error="too late")
    async with database.driver() as connection:
        renewed = await inbox.renew(connection, [stalled])
        await inbox.release(connection, [stalled])

    assert renewed == set()
    assert await claimed(database) == []  # the lease of the other one was not given back
    assert (await rows(database, "SELECT finished_at FROM inbox"))[0][0] is None


async def test_a_lease_is_renewed_while_a_transaction_of_another_command_goes_on(
    database: Database,
) -> None:
    slow, other = await leased(database, None), await leased(database, None)
    await let_leases_run_out(database)

    async with inbox.fenced(database, slow), database.driver() as connection:
        async with asyncio.timeout(10 * pace()):
            held = await inbox.renew(connection, [slow, other])

    assert held == {slow.command_id, other.command_id}
    assert await claimed(database) == [slow.command_id]


async def test_a_lease_cannot_be_taken_away_while_its_holder_commits(database: Database) -> None:
    holder = await leased(database)
    await let_leases_run_out(database)

    async with inbox.fenced(database, holder) as connection:
        while_committing = await claimed(database)
        await parking.park(connection, holder, "Of the test.")

    assert while_committing == []
    assert await claimed(database) == []


@pytest.mark.parametrize("fenced", [inbox.fenced, leased_writes.fenced])
async def test_a_driver_that_stands_still_in_a_transaction_keeps_its_locks_for_seconds(
    database: Database, fenced: Callable[..., AbstractAsyncContextManager[Any]]
) -> None:
    command = await leased(database)

    with pytest.raises(ENDED) as ended:
        async with fenced(database, command):
            async with asyncio.timeout((LOCKED_IDLE_SECONDS + 5) * pace()):
                await execute(database, "SELECT 1 FROM inbox FOR UPDATE")

    assert is_away(ended.value)


async def test_a_lease_from_before_the_clock_was_set_back_is_taken_and_its_holder_commits_nothing(
    database: Database,
) -> None:
    holder = await leased(database)
    renewed = await leased(database)
    await execute(
        database,
        "UPDATE inbox SET lease_until = lease_until + interval '1 hour'"
        f" WHERE command_id = '{holder.command_id}'",
    )

    taken = await claimed(database)

    assert taken == [holder.command_id], f"{renewed.command_id} has a lease of now"
    with pytest.raises(inbox.LeaseLost):
        async with inbox.fenced(database, holder) as connection:
            await inbox.postpone(connection, holder, seconds=0, error="too late")


async def test_commands_that_are_due_at_a_time_from_before_the_clock_was_set_back_are_made_due(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "HOUSEKEEPING_SECONDS", 0.01)
    monkeypatch.setattr(inbox_housekeeping, "HASTENED_AT_ONCE", 1)
    put_off, also_put_off, resting, parked = [await leased(database) for _ in range(4)]
    for command, seconds in (
        (put_off, 7200),
        (also_put_off, 7200),
        (resting, housekeeping.LONGEST_PAUSE_SECONDS),
    ):
        async with inbox.fenced(database, command) as connection:
            await inbox.postpone(connection, command, seconds=seconds, error="outcome_pending")
    async with inbox.fenced(database, parked) as connection:
        await parking.park(connection, parked, "Of the test.")

    keeping = asyncio.create_task(housekeeping.keep_house(database, lambda: None, hastens=True))
    due = await until(lambda: due_commands(database, 2))
    keeping.cancel()
    await asyncio.wait({keeping})

    assert due == {put_off.command_id, also_put_off.command_id}


async def test_a_command_that_is_held_by_the_setting_of_another_process_stays_held(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "HOUSEKEEPING_SECONDS", 0.01)
    held = await leased(database)
    async with inbox.fenced(database, held) as connection:
        await inbox.postpone(connection, held, seconds=7200, error="outcome_pending")
    turns = itertools.count()
    some_turns = asyncio.Event()

    def caught_up_to() -> None:
        if next(turns) == TURNS:
            some_turns.set()

    keeping = asyncio.create_task(housekeeping.keep_house(database, caught_up_to, hastens=False))
    async with asyncio.timeout(20 * pace()):
        await some_turns.wait()
    keeping.cancel()
    await asyncio.wait({keeping})

    assert await due_commands(database, 0) == set()


async def due_commands(database: Database, count: int) -> set[uuid.UUID]:
    """Once there are so many."""
    found = await rows(database, "SELECT command_id FROM inbox WHERE due_at <= now()")
    return {row.command_id for row in found} if len(found) >= count else set()


async def test_commands_of_one_key_are_claimed_one_at_a_time_in_the_order_recorded(
    database: Database,
) -> None:
    first = await leased(database, "customer")
    async with database.transaction() as connection:
        second, third = accepting(), accepting()
        assert await inbox_acceptance.accept(connection, second, "customer", lease=True) is None
        assert await inbox_acceptance.accept(connection, third, "customer", lease=True) is None

    assert await claimed(database) == []
    async with inbox.fenced(database, first) as connection:
        await inbox.postpone(connection, first, seconds=60, error="outcome_pending")
    assert await claimed(database) == []  # a later one waits for a postponed earlier one
    await execute(database, "UPDATE inbox SET due_at = now() WHERE due_at > now()")
    assert await claimed(database) == [first.command_id]
    await execute(
        database, f"UPDATE inbox SET finished_at = now() WHERE command_id = '{first.command_id}'"
    )
    assert await claimed(database) == [second.command_id]


async def test_claiming_at_once_gives_each_command_to_one(database: Database) -> None:
    commands = [accepting() for _ in range(40)]
    async with database.transaction() as connection:
        for command in commands:
            await inbox_acceptance.accept(connection, command, None, lease=False)

    batches = await asyncio.gather(*(claimed(database) for _ in range(8)))

    taken = [command_id for batch in batches for command_id in batch]
    assert sorted(taken) == sorted(command.command_id for command in commands)


async def test_an_internal_command_is_recorded_once_however_often_it_is_enqueued(
    database: Database,
) -> None:
    command = InternalCommand(
        command_id=uuid.uuid4(),
        operation="onboarding.apply_decision",
        ordering_key="customer",
        principal=PRINCIPAL,
        body={"decision": "approved"},
    )

    for _ in range(2):
        async with database.transaction() as connection:
            await inbox_acceptance.enqueue(connection, command)

    assert await claimed(database) == [command.command_id]


async def forget(database: Database, command: inbox.Leased) -> None:
    async with inbox.fenced(database, command) as connection:
        await forgetting.forget(connection, command)


async def test_a_forgotten_command_begins_anew_by_another_message_and_not_by_a_redelivery(
    database: Database,
) -> None:
    first = await leased(database)
    await forget(database, first)
    redelivery = replace(accepting(first.command_id), message_id=first.message_id)
    another = replace(accepting(first.command_id), body_hash="of another body")

    async with database.transaction() as connection:
        again = await inbox_acceptance.accept(connection, redelivery, None, lease=True)
    async with database.transaction() as connection:
        anew = await inbox_acceptance.accept(connection, another, None, lease=True)

    assert isinstance(again, KnownCommand)
    assert isinstance(anew, inbox.Leased)
    assert anew.attempts == 1


async def test_a_command_that_is_forgotten_while_it_arrives_again_is_new(
    database: Database,
) -> None:
    first = await leased(database)

    async def arrive() -> inbox.Leased | KnownCommand | None:
        async with database.transaction() as connection:
            return await inbox_acceptance.accept(
                connection, accepting(first.command_id), None, lease=True
            )

    async with inbox.fenced(database, first) as connection:
        await forgetting.forget(connection, first)
        arriving = asyncio.create_task(arrive())
        await until(
            lambda: rows(database, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        )

    assert isinstance(await arriving, inbox.Leased)


async def test_what_was_finished_is_kept_a_day_unless_for_ever(database: Database) -> None:
    commands = [accepting(), replace(accepting(), keep_for_ever=True), accepting()]
    async with database.transaction() as connection:
        for command in commands:
            await inbox_acceptance.accept(connection, command, None, lease=False)
    await execute(
        database,
        "UPDATE inbox SET finished_at = now() - interval '23 hours'",
        "UPDATE inbox SET finished_at = now() - interval '25 hours'"
        f" WHERE command_id <> '{commands[2].command_id}'",
    )
    await audit_finished(database)

    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 1
        assert await inbox_housekeeping.purge(connection) == 0

    kept = {row[0] for row in await rows(database, "SELECT command_id FROM inbox")}
    assert kept == {commands[1].command_id, commands[2].command_id}


@pytest.mark.parametrize(
    ("hours_behind", "kept"),
    [
        ([0], set()),
        ([2], {25}),
        ([None], {25, 27}),
        # Commands that were delivered are in the queue again.
        ([0, None], {25, 27}),
        ([0, 2, None], {25}),
    ],
)
async def test_what_a_command_may_repeat_that_still_waits_in_the_queue_is_kept(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    hours_behind: Sequence[int | None],
    kept: set[int],
) -> None:
    monkeypatch.setattr(housekeeping, "HOUSEKEEPING_SECONDS", 0.01)
    by_age = {25: accepting(), 27: accepting()}
    async with database.transaction() as connection:
        for command in by_age.values():
            await inbox_acceptance.accept(connection, command, None, lease=False)
    await execute(
        database,
        *(
            f"UPDATE inbox SET finished_at = now() - interval '{age} hours'"
            f" WHERE command_id = '{command.command_id}'"
            for age, command in by_age.items()
        ),
    )
    await audit_finished(database)
    turns = itertools.count()
    some_turns = asyncio.Event()

    def caught_up_to() -> float | None:
        turn = next(turns)
        if turn == TURNS:
            some_turns.set()
        hours = hours_behind[min(turn, len(hours_behind) - 1)]
        return None if hours is None else time.time() - hours * 3600

    keeping = asyncio.create_task(housekeeping.keep_house(database, caught_up_to, hastens=True))
    async with asyncio.timeout(20 * pace()):
        await some_turns.wait()
    keeping.cancel()
    await asyncio.wait({keeping})

    left = {row[0] for row in await rows(database, "SELECT command_id FROM inbox")}
    assert left == {by_age[age].command_id for age in kept}


async def test_a_value_that_does_not_fit_does_not_mean_that_the_database_is_away(
    database: Database,
) -> None:
    with pytest.raises(DBAPIError) as wrong:
        await rows(database, "SELECT CAST(:n AS bigint)", n=2**70)

    assert not is_away(wrong.value)


# Processes
