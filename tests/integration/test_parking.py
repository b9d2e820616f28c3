"""A command that driving again does not finish is parked: out of the way, and not final, until an operator decides."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import (
    BanksideError,
    InternalError,
    Invalid,
    OutcomePending,
    ProviderError,
    Unavailable,
)
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.operating.commands import SERVICES, CommandState, ListCommands
from libs.contracts.operating.pages import Order, Place
from libs.contracts.result import Result
from libs.handling import running
from libs.handling.commands import CommandHandler, Drive
from libs.handling.operating.open_commands import OpenCommands
from libs.handling.operating.serving import operating_handlers
from libs.handling.parking import FAULTS_IN_A_ROW, NeedsOperator
from libs.messaging.envelope import Envelope, Reply
from libs.messaging.service_client import ServiceClient
from libs.persistence import inbox_acceptance, inbox_housekeeping
from libs.persistence.engine import Database
from tests.integration.gateway.desk import WAIT_SECONDS, calling, carrying_out, until
from tests.integration.replica import TRACES, by_person
from tests.integration.tables import audit_finished, define, execute, rows
from tests.integration.test_command_driving import envelope_of, processes
from tests.integration.test_inbox import accepting, claimed, leased
from tests.integration.test_parked_commands import park, retry
from tests.support.answered_operators import OPERATOR, AnsweredOperators
from tests.support.infrastructure import Environment
from tests.support.pace import pace

PATIENCE_SECONDS = 4.0
"""Of a caller that is told that its command is pending: that comes 3 s earlier, whether it was driven or not."""


class Service:
    """The person update: each drive of person `p1` ends as the next of `endings` says, the last one for ever; those of
    others succeed.
    """

    def __init__(self, *endings: Callable[[], Exception] | None) -> None:
        self.endings = list(endings)
        self.drives = 0
        self.done: list[str] = []

    async def __call__(self, drive: Drive, command: UpdatePerson) -> Result:
        if command.person_id == "p1":
            ending = self.endings[min(self.drives, len(self.endings) - 1)]
            self.drives += 1
            if ending is not None:
                raise ending()
        self.done.append(str(drive.command_id))
        return Result()


@asynccontextmanager
async def serving(
    environment: Environment, service: CommandHandler
) -> AsyncIterator[ServiceClient]:
    handlers = {UPDATE_PERSON.name: service}
    async with (
        carrying_out(environment, handlers, ordering=by_person),
        calling(environment) as service_client,
    ):
        yield service_client


async def told(service_client: ServiceClient, envelope: Envelope) -> str:
    try:
        reply = await service_client.send_command(envelope)
    except OutcomePending as error:
        return error.code
    return reply.error.code if reply.error else "ok"


async def parked(database: Database) -> Sequence[Any]:
    """Those that are parked, once there are any; nothing waits for the end of its pause."""
    await execute(database, "UPDATE inbox SET due_at = now() WHERE due_at > now()")
    return await rows(
        database,
        "SELECT command_id, parked_because, attempts FROM inbox WHERE parked_at IS NOT NULL",
    )


def again(envelope: Envelope) -> Envelope:
    """Another request under the same Idempotency-Key, whose answer is there at once."""
    deadline = time.time() + WAIT_SECONDS * pace()
    return structs.replace(envelope, message_id=str(uuid.uuid4()), deadline=deadline)


async def test_faults_in_a_row_park_a_command_and_the_next_of_its_key_is_carried_out(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(*[AssertionError, InternalError] * (FAULTS_IN_A_ROW // 2))
    async with serving(fresh_environment, service) as service_client:
        bad = envelope_of(service_client, "p1", PATIENCE_SECONDS)
        first = await told(service_client, bad)
        ((command_id, because, attempts),) = await until(lambda: parked(database))
        service.endings = [None]
        second = await told(service_client, envelope_of(service_client, "p1"))
        repeated = await told(service_client, again(bad))

    assert first == "outcome_pending"
    assert (str(command_id), attempts, service.drives) == (bad.id, FAULTS_IN_A_ROW, 11)
    assert (
        because
        == "10 drives in a row failed or were interrupted, the last one failed by InternalError."
    )
    assert second == "ok"
    assert repeated == "idempotency_in_progress"
    assert bad.id not in service.done


async def test_a_handler_that_does_not_return_is_cancelled_and_its_drive_is_a_fault(
    fresh_environment: Environment, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "HANDLER_SECONDS", 0.01)
    cancelled = 0

    async def update(_drive: Drive, _: UpdatePerson) -> Result:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        finally:
            cancelled += 1
        return Result()

    async with serving(fresh_environment, update) as service_client:
        answer = await told(service_client, envelope_of(service_client, "p1", PATIENCE_SECONDS))
        ((_, because, _),) = await until(lambda: parked(database))

    assert answer == "outcome_pending"
    assert cancelled == FAULTS_IN_A_ROW
    assert because.endswith("the last one failed by HandlerTooLong.")


async def test_a_retried_command_is_carried_out_and_its_key_holds_the_answer(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(*[AssertionError] * FAULTS_IN_A_ROW, AssertionError, None)
    async with serving(fresh_environment, service) as service_client:
        envelope = envelope_of(service_client, "p1", PATIENCE_SECONDS)
        await told(service_client, envelope)
        await until(lambda: parked(database))

        found = await retry(database, uuid.UUID(envelope.id))
        reply = await until(lambda: final_answer(database, service_client, envelope))

    assert found is not None
    assert found.parked_at is not None
    assert service.drives == FAULTS_IN_A_ROW + 2  # one more fault does not park it again
    assert (reply.error, reply.replayed) == (None, True)


async def final_answer(
    database: Database, service_client: ServiceClient, envelope: Envelope
) -> Reply | None:
    assert not await parked(database)
    reply = await service_client.send_command(again(envelope))
    return None if reply.error and reply.error.code == "idempotency_in_progress" else reply


async def test_what_is_no_fault_of_ours_never_parks_and_ends_a_row_of_faults(
    fresh_environment: Environment, database: Database
) -> None:
    errors: list[type[BanksideError]] = [OutcomePending, ProviderError, Unavailable]
    endings = {error.__name__: [error(), AssertionError(), None] for error in errors}
    async with calling(fresh_environment) as service_client:
        bodies = [bytes(envelope_of(service_client, person).body) for person in endings]
    async with database.transaction() as connection:
        for body in bodies:
            command = replace(accepting(), body=body)
            await inbox_acceptance.accept(connection, command, None, lease=False)
    await execute(database, f"UPDATE inbox SET faults = {FAULTS_IN_A_ROW - 1}")

    async def drive(_drive: Drive, command: UpdatePerson) -> Result:
        ending = endings[command.person_id].pop(0)
        if ending is not None:
            raise ending
        return Result()

    async with serving(fresh_environment, drive):

        async def are_done() -> bool:
            assert not await parked(database)
            return not any(endings.values())

        assert await until(are_done)


async def test_a_disk_that_fails_parks_no_command(
    fresh_environment: Environment, database: Database
) -> None:
    failures = {
        "53100": 'could not extend file "base/5/16384": No space left on device',
        "58030": 'could not read block 7 in file "base/5/16384": Input/output error',
        "XX000": 'could not extend file "base/5/16384": File too large',
    }
    async with calling(fresh_environment) as service_client:
        bodies = [bytes(envelope_of(service_client, sqlstate).body) for sqlstate in failures]
    async with database.transaction() as connection:
        for body in bodies:
            command = replace(accepting(), body=body)
            await inbox_acceptance.accept(connection, command, None, lease=False)
    await execute(database, f"UPDATE inbox SET faults = {FAULTS_IN_A_ROW - 1}")
    failing = dict(failures)

    async def drive(_drive: Drive, command: UpdatePerson) -> Result:
        if message := failing.pop(command.person_id, None):
            await execute(
                database,
                f"DO $$ BEGIN RAISE '{message}' USING ERRCODE = '{command.person_id}'; END $$",
            )
        return Result()

    async with serving(fresh_environment, drive):

        async def are_done() -> bool:
            assert not await parked(database)
            await execute(database, "UPDATE inbox SET lease_until = now() WHERE attempts = 1")
            return not await rows(database, "SELECT 1 FROM inbox WHERE finished_at IS NULL")

        assert await until(are_done)


async def test_a_stored_command_that_cannot_be_read_is_parked_at_its_first_drive(
    fresh_environment: Environment, database: Database
) -> None:
    changes = {
        "body = convert_to('{\"first_name\": 7}', 'UTF8')": "ValidationError",
        "body = '{'": "NotExactJson",
        "principal = '{}'": "its principal",
        "principal = '\\xff'": "its principal",
    }
    drives: Counter[str] = Counter()

    async def drive(_drive: Drive, command: UpdatePerson) -> Result:
        drives[command.person_id] += 1
        if command.person_id == "p9":
            return Result()
        raise OutcomePending

    async with serving(fresh_environment, drive) as service_client:
        envelopes = [
            envelope_of(service_client, f"p{n}", PATIENCE_SECONDS) for n in range(len(changes))
        ]
        await asyncio.gather(*(told(service_client, envelope) for envelope in envelopes))

        async def all_rest() -> bool:
            """A drive that is under way would make its command due by its end."""
            later = "UPDATE inbox SET due_at = now() + interval '1 hour' WHERE lease IS NULL"
            return len(await rows(database, f"{later} AND attempts > 0 RETURNING 1")) == len(
                changes
            )

        await until(all_rest)
        driven = drives.total()
        for envelope, change in zip(envelopes, changes, strict=True):
            where = f"WHERE command_id = '{envelope.id}'"
            await execute(database, f"UPDATE inbox SET {change}, due_at = now() {where}")

        async def all_parked() -> Sequence[Any]:
            found = await parked(database)
            return found if len(found) == len(changes) else ()

        found = await until(all_parked)
        later = await told(service_client, envelope_of(service_client, "p9"))

    assert {str(row.command_id): row.parked_because for row in found} == {
        envelope.id: f"This release cannot read the stored command ({cause})."
        for envelope, cause in zip(envelopes, changes.values(), strict=True)
    }
    assert drives.total() <= driven + len(changes) + 1
    assert later == "ok"


async def test_a_handler_that_needs_an_operator_has_its_command_parked_at_once_by_its_sentence(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(lambda: NeedsOperator("The bank must be asked by telephone."))
    async with serving(fresh_environment, service) as service_client:
        envelope = envelope_of(service_client, "p1", PATIENCE_SECONDS)
        first = await told(service_client, envelope)
        ((_, because, attempts),) = await until(lambda: parked(database))

    assert first == "outcome_pending"
    assert (because, attempts) == ("The bank must be asked by telephone.", 1)


@pytest.mark.parametrize("ending", ["needs_operator", "fault"])
async def test_crashes_around_parking_leave_the_command_parked_and_without_effect(
    fresh_environment: Environment, database: Database, tmp_path: Path, ending: str
) -> None:
    ends = f"UPDATE ending SET error = '{ending}'"
    await define(fresh_environment, "onboarding", *TRACES, ends)
    as_if_later = f"UPDATE inbox SET lease_until = now(), faults = {FAULTS_IN_A_ROW - 1}"
    async with (
        processes(fresh_environment, tmp_path, 1) as (replica,),
        calling(fresh_environment) as service_client,
    ):
        await replica.start(BANKSIDE_CRASH_AT="onboarding.concluding")
        asking = asyncio.create_task(
            told(service_client, envelope_of(service_client, "p1", PATIENCE_SECONDS))
        )
        endings = [await replica.ended()]
        await execute(database, as_if_later)
        before = await parked(database)
        replica.spawn(BANKSIDE_CRASH_AT="onboarding.concluded")
        endings.append(await replica.ended())
        after = await parked(database)
        await replica.start()

        answer = await asking
        (command,) = await parked(database)

    assert endings == [-9, -9]
    assert (len(before), len(after)) == (0, 1)
    assert answer == "outcome_pending"
    assert command.parked_because
    assert await rows(database, "SELECT 1 FROM effects") == []


@pytest.fixture
def operator(fresh_environment: Environment) -> AnsweredOperators:
    """The command line, where no service runs."""
    return AnsweredOperators(
        fresh_environment,
        {service: partial(operating_handlers, service) for service in SERVICES},
    )


async def test_operators_list_retry_and_abandon_commands_of_every_service(
    fresh_environment: Environment, database: Database, operator: AnsweredOperators
) -> None:
    first, second = await leased(database, "tenant/customer"), await leased(database)
    await park(database, first, "Why it is parked.")

    every = (await operator.command("commands", "list"))["commands"]
    (shown,) = (await operator.command("commands", "list", "--parked"))["commands"]
    none = (await operator.command("commands", "list", "--service", "payments"))["commands"]
    of_others = (await operator.command("commands", "list", "--tenant", "another"))["commands"]
    retried = await operator.command(
        "commands", "retry", str(first.command_id), "--reason", "It is mended."
    )
    left = (await operator.command("commands", "list", "--parked"))["commands"]

    assert {item["command_id"] for item in every} == {
        str(first.command_id),
        str(second.command_id),
    }
    assert (shown["service"], shown["tenant"]) == ("onboarding", "tenant")
    assert (shown["ordering_key"], shown["parked_because"]) == (
        "tenant/customer",
        "Why it is parked.",
    )
    assert none == of_others == []
    assert (retried["parked_at"], retried["is_driven"]) == (None, False)
    assert left == []
    assert await claimed(database) == [first.command_id]
    assert await audited(database) == [
        ("operator:grace", "commands.retry", str(first.command_id), "It is mended.")
    ]


async def test_an_abandoned_command_is_final_for_good_with_who_and_why(
    fresh_environment: Environment, database: Database, operator: AnsweredOperators
) -> None:
    service = Service(lambda: NeedsOperator("Of the test."))
    async with serving(fresh_environment, service) as service_client:
        envelope = envelope_of(service_client, "p1", PATIENCE_SECONDS)
        await told(service_client, envelope)
        await until(lambda: parked(database))

        await operator.command(
            *("commands", "abandon", envelope.id, "--yes"),
            *("--reason", "The bank has the change."),
        )
        reply = await service_client.send_command(again(envelope))

    await audit_finished(database)
    await execute(database, "UPDATE inbox SET finished_at = now() - interval '90 days'")
    async with database.transaction() as connection:
        assert await inbox_housekeeping.purge(connection) == 0
    (row,) = await rows(
        database, "SELECT body, abandoned_by, abandoned_because, parked_because FROM inbox"
    )
    assert reply.error is not None
    assert (reply.error.code, reply.error.to_error().status) == ("abandoned", 409)
    assert (reply.replayed, reply.request_id) == (True, envelope.request_id)
    assert tuple(row) == (b"", "operator:grace", "The bank has the change.", "Of the test.")
    assert service.drives == 1


async def test_operators_are_told_what_cannot_be_done(
    fresh_environment: Environment, database: Database, operator: AnsweredOperators
) -> None:
    driven = str((await leased(database)).command_id)
    nobody = str(uuid.uuid4())

    for arguments, why in (
        (("abandon", driven, "--reason", "x", "--yes"), "Only a parked command"),
        (("abandon", driven, "--reason", "x"), "give --yes"),
        (("abandon", driven, "--reason", " ", "--yes"), "--reason is"),
        (("retry", nobody, "--reason", "x"), "no unfinished command"),
        (("list", "--service", "gateway"), "webhook_dispatcher"),
        (("list", "--limit", "0"), "--limit is"),
    ):
        with pytest.raises(AssertionError, match=why):
            await operator.command("commands", *arguments)

    assert await rows(database, "SELECT 1 FROM inbox WHERE finished_at IS NOT NULL") == []


async def audited(database: Database) -> list[tuple[str, str, str, str]]:
    """What operators did: who, what, to which command, why."""
    entries = [json.loads(row[0]) for row in await rows(database, "SELECT entry FROM audit")]
    return [
        (one["actor"], one["action"], one["command_id"], one["reason"])
        for one in entries
        if one["actor"].startswith("operator:")
    ]


async def test_pages_of_commands_go_on_where_the_last_one_ended(
    database: Database, fresh_environment: Environment
) -> None:
    made = [str((await leased(database)).command_id) for _ in range(5)]
    await execute(
        database,
        "UPDATE inbox SET accepted_at = now() WHERE command_id = ANY(ARRAY(SELECT"
        " command_id FROM inbox LIMIT 3))",
    )
    commands = OpenCommands("onboarding", database, None)

    async def pages(order: Order, state: CommandState | None = None) -> list[list[str]]:
        found: list[list[str]] = []
        after: str | None = None
        while True:
            query = ListCommands(order=order, limit=2, after=after, state=state)
            page: Any = (await commands.list(OPERATOR, query, 0)).data
            found.append([item.command_id for item in page.items])
            after = page.next
            if after is None:
                return found

    oldest, newest = await pages(Order.OLDEST), await pages(Order.NEWEST)

    assert [len(page) for page in oldest] == [2, 2, 1]
    every = [command_id for page in oldest for command_id in page]
    assert sorted(every) == sorted(made)
    assert [command_id for page in newest for command_id in page] == every[::-1]
    assert await pages(Order.OLDEST, CommandState.PARKED) == [[]]
    assert await pages(Order.OLDEST, CommandState.OPEN) == oldest
    for after in (Place(datetime.now(UTC), "none").encode(), Place(datetime.now(UTC), "").encode()):
        with pytest.raises(Invalid):
            await commands.list(OPERATOR, ListCommands(after=after), 0)
