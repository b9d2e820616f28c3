"""A command whose drives are interrupted, each by the end of its process or of its lease: it is counted, driven apart
from others like it, and parked at last. An outage is no interruption.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from libs.contracts.customers import UpdatePerson
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.handling.parking import INTERRUPTED, INTERRUPTIONS_IN_A_ROW
from libs.handling.running import CommandRunner
from libs.persistence import inbox, inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox import SUSPECT_INTERRUPTIONS, Leased
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.replica import DEADLY, TRACES
from tests.integration.tables import define, execute, rows
from tests.integration.test_command_driving import envelope_of, processes
from tests.integration.test_inbox import LASTING_SECONDS, accepting, leased, let_leases_run_out
from tests.integration.test_parking import PATIENCE_SECONDS, parked, told
from tests.support.infrastructure import Environment

BECOMES_SUSPECT = SUSPECT_INTERRUPTIONS - 1


async def claimed(database: Database, *, with_suspect: bool = True) -> list[Leased]:
    async with database.driver() as connection:
        return await inbox.claim(connection, 10, LASTING_SECONDS, with_suspect=with_suspect)


async def claimed_anew(database: Database) -> Leased:
    """The only command, after the end of its lease."""
    await let_leases_run_out(database)
    (command,) = await claimed(database)
    return command


async def test_each_lease_that_runs_out_is_counted_until_a_drive_ends(database: Database) -> None:
    await leased(database)

    first, second = await claimed_anew(database), await claimed_anew(database)
    async with database.driver() as connection:
        await inbox.release(connection, [second])
    (released,) = await claimed(database)
    third = await claimed_anew(database)
    async with inbox.fenced(database, third) as transaction:
        await inbox.postpone(transaction, third, seconds=0, error="outcome_pending")
    (driven,) = await claimed(database)
    anew = await claimed_anew(database)

    counts = [one.interruptions for one in (first, second, released, third, driven, anew)]
    assert counts == [1, 2, 0, 3, 0, 1]


async def test_one_suspect_is_claimed_at_a_time_and_all_others_beside_it(
    database: Database,
) -> None:
    suspects = {(await leased(database)).command_id for _ in range(3)}
    await execute(database, f"UPDATE inbox SET faults = {BECOMES_SUSPECT}")
    others = {(await leased(database)).command_id for _ in range(3)}
    await let_leases_run_out(database)

    first = await claimed(database)
    beside = await claimed(database, with_suspect=False)
    second = await claimed(database)

    assert others < {one.command_id for one in first}
    assert beside == []
    both = [one.command_id for one in (*first, *second) if one.is_suspect]
    assert len(both) == len({*both} & suspects) == 2


class Service:
    """The person update; the first drive of each command ends as if the database were away, if it is `cut_off`."""

    def __init__(self, *, cut_off: bool = False) -> None:
        self.cut_off = cut_off
        self.drives: list[Leased] = []

    async def __call__(self, drive: Drive, _: UpdatePerson) -> Result:
        self.drives.append(drive.lease)
        if self.cut_off and drive.attempt == 1:
            raise ConnectionError
        return Result()


async def test_a_process_drives_suspects_one_after_the_other_and_others_beside_them(
    fresh_environment: Environment, database: Database
) -> None:
    async with calling(fresh_environment) as service_client:
        body = bytes(envelope_of(service_client).body)
    suspects = {(await leased(database)).command_id for _ in range(2)}
    await execute(
        database,
        f"UPDATE inbox SET faults = {BECOMES_SUSPECT}, body = convert_to('{body.decode()}', 'UTF8')",
    )
    await let_leases_run_out(database)
    under_way: set[UUID] = set()
    together: list[set[UUID]] = []

    async def drive(drive: Drive, _: UpdatePerson) -> Result:
        """That of a suspect ends once a later claim has taken another command, which was carried out."""
        if not drive.lease.is_suspect:
            return Result()
        under_way.add(drive.command_id)
        together.append({*under_way})
        other = replace(accepting(), body=body)
        async with database.transaction() as connection:
            await inbox_acceptance.accept(connection, other, None, lease=False)
        its_reply = f"SELECT 1 FROM inbox WHERE command_id = '{other.command_id}' AND reply <> ''"
        await until(lambda: rows(database, its_reply))
        under_way.remove(drive.command_id)
        return Result()

    async def all_are_done() -> bool:
        return not await rows(database, "SELECT 1 FROM inbox WHERE finished_at IS NULL")

    async with carrying_out(fresh_environment, {UPDATE_PERSON.name: drive}):
        await until(all_are_done)

    assert [len(each) for each in together] == [1, 1]
    assert set().union(*together) == suspects


async def test_an_outage_of_the_database_interrupts_no_drive(
    fresh_environment: Environment,
) -> None:
    """The process that lives gives the lease back, as soon as it can."""
    service = Service(cut_off=True)
    async with (
        carrying_out(fresh_environment, {UPDATE_PERSON.name: service}),
        calling(fresh_environment) as service_client,
    ):
        answer = await told(service_client, envelope_of(service_client))

    assert answer == "ok"
    assert [(one.attempts, one.interruptions) for one in service.drives] == [(1, 0), (2, 0)]


async def test_a_command_whose_drives_die_as_their_replies_are_stored_is_parked(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise KeyError("of the test")

    async def is_parked() -> Sequence[Any]:
        await execute(
            database,
            f"UPDATE inbox SET faults = greatest(faults, {INTERRUPTIONS_IN_A_ROW - 2})"
            " WHERE parked_at IS NULL",
        )
        await let_leases_run_out(database)
        return await parked(database)

    monkeypatch.setattr(CommandRunner, "_conclude_reply", die)
    async with (
        carrying_out(fresh_environment, {UPDATE_PERSON.name: Service()}),
        calling(fresh_environment) as service_client,
    ):
        answer = await told(service_client, envelope_of(service_client, "p1", PATIENCE_SECONDS))
        ((_, because, attempts),) = await until(is_parked)

    assert answer == "outcome_pending"
    assert because == INTERRUPTED
    assert attempts >= 3


async def test_a_command_that_ends_each_process_is_parked_and_what_was_driven_beside_it_is_done(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    await define(fresh_environment, "onboarding", *TRACES, "UPDATE gate SET open = false")
    async with (
        processes(fresh_environment, tmp_path, 1) as (replica,),
        calling(fresh_environment) as service_client,
    ):
        deadly = envelope_of(service_client, DEADLY, PATIENCE_SECONDS)
        innocent = envelope_of(service_client)
        await replica.start()
        answer = asyncio.create_task(told(service_client, innocent))
        await until(lambda: rows(database, "SELECT 1 FROM drives"))
        pending = asyncio.create_task(told(service_client, deadly))
        endings = [await replica.ended()]
        await execute(
            database,
            "UPDATE gate SET open = true",
            f"UPDATE inbox SET lease_until = now(), faults = {BECOMES_SUSPECT}",
            f"UPDATE inbox SET faults = {INTERRUPTIONS_IN_A_ROW - 2} WHERE command_id = '{deadly.id}'",
        )
        replica.spawn()  # it may die before it is ready
        endings.append(await replica.ended())
        before = await parked(database)
        await execute(database, "UPDATE inbox SET lease_until = now() WHERE finished_at IS NULL")
        await replica.start()

        async def is_parked() -> Sequence[Any]:
            return await parked(database)

        ((command_id, because, _),) = await until(is_parked)
        answers = (await answer, await pending)
        later = await told(service_client, envelope_of(service_client, "p2"))

    assert endings == [-9, -9]
    assert before == []
    assert (str(command_id), because) == (deadly.id, INTERRUPTED)
    assert answers == ("ok", "outcome_pending")
    assert later == "ok"
