"""The row of a parked command: out of the way of the others of its key, counted apart, never purged."""

from __future__ import annotations

import uuid

import pytest

from libs.persistence import inbox, inbox_acceptance, inbox_housekeeping, open_commands, parking
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from tests.integration.tables import execute, rows
from tests.integration.test_inbox import accepting, claimed, leased


async def park(database: Database, command: inbox.Leased, because: str = "Of the test.") -> None:
    async with inbox.fenced(database, command) as connection:
        await parking.park(connection, command, because)


async def accept(
    database: Database, command: NewCommand, key: str | None
) -> inbox.Leased | KnownCommand | None:
    async with database.transaction() as connection:
        return await inbox_acceptance.accept(connection, command, key, lease=True)


async def retry(database: Database, command_id: uuid.UUID) -> open_commands.OpenCommand | None:
    async with database.transaction() as connection:
        return await parking.retry(connection, command_id)


async def test_a_parked_command_is_not_claimed_and_later_ones_of_its_key_are(
    database: Database,
) -> None:
    first = await leased(database, "customer")
    waiting = accepting()
    assert await accept(database, waiting, "customer") is None

    await park(database, first)

    assert await claimed(database) == [waiting.command_id]


async def test_a_command_whose_key_has_only_a_parked_one_is_leased_at_once(
    database: Database,
) -> None:
    await park(database, await leased(database, "customer"))

    later = await accept(database, accepting(), "customer")

    assert isinstance(later, inbox.Leased)


async def test_a_retried_command_waits_for_those_of_its_key_that_are_open_by_then(
    database: Database,
) -> None:
    first = await leased(database, "customer")
    second = accepting()
    await accept(database, second, "customer")
    await park(database, first)
    assert await claimed(database) == [second.command_id]

    await retry(database, first.command_id)

    assert await claimed(database) == []  # the second is driven: commands of a key never overlap
    third = await accept(database, accepting(), "customer")
    assert third is None
    await execute(
        database, f"UPDATE inbox SET finished_at = now() WHERE command_id = '{second.command_id}'"
    )
    assert await claimed(database) == [first.command_id]


async def test_a_retried_command_without_a_key_keeps_its_place_among_all_that_were_accepted(
    database: Database,
) -> None:
    first, second = await leased(database), await leased(database)
    await park(database, first)

    await retry(database, first.command_id)

    accepted = await rows(database, "SELECT command_id FROM inbox ORDER BY sequence")
    assert [row.command_id for row in accepted] == [first.command_id, second.command_id]
    assert await claimed(database) == [first.command_id]


async def test_a_parked_command_is_counted_apart_and_never_purged(database: Database) -> None:
    await leased(database)
    await park(database, await leased(database))
    await execute(
        database,
        "UPDATE inbox SET accepted_at = now() - interval '90 days'",
        "UPDATE inbox SET parked_at = now() - interval '80 days' WHERE parked_at IS NOT NULL",
    )

    async with database.transaction() as connection:
        purged = await inbox_housekeeping.purge(connection)
        backlog = await inbox_housekeeping.measure_backlog(connection)

    assert purged == 0
    assert (backlog.open, backlog.parked) == (1, 1)
    assert backlog.oldest_open_seconds == pytest.approx(90 * 86400, abs=60)
    assert backlog.longest_parked_seconds == pytest.approx(80 * 86400, abs=60)


async def test_a_driver_that_was_replaced_parks_nothing(database: Database) -> None:
    stalled = await leased(database)
    await execute(database, "UPDATE inbox SET lease_until = now() - interval '1 second'")
    assert await claimed(database) == [stalled.command_id]

    with pytest.raises(inbox.LeaseLost):
        await park(database, stalled)

    assert await rows(database, "SELECT 1 FROM inbox WHERE parked_at IS NOT NULL") == []
