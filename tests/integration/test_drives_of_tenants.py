"""A tenant's share of the drives: commands of others are driven while one tenant has many due, or slow ones."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from dataclasses import replace

from libs.contracts.customers import UpdatePerson
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.handling.driving import DRIVES_OF_TENANT
from libs.messaging.envelope import Reply
from libs.persistence import inbox, inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox import SUSPECT_INTERRUPTIONS
from libs.persistence.inbox_acceptance import InternalCommand
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.tables import execute
from tests.integration.test_inbox import LASTING_SECONDS, accepting
from tests.integration.test_inbox_forgotten import accept, arriving, forget
from tests.support.infrastructure import Environment
from tests.support.pace import pace

BUSY = Principal("busy", "Busy", Family.PARTNER, "sub_busy")
OTHER = Principal("other", "Other", Family.PARTNER, "sub_other")
MORE = DRIVES_OF_TENANT
"""Commands of the busy tenant beyond its limit: as many as would take all drives of the process."""


async def test_slow_commands_of_one_tenant_leave_drives_to_another(
    fresh_environment: Environment,
) -> None:
    begun: list[str] = []
    provider_answers = asyncio.Event()

    async def update(drive: Drive, _: UpdatePerson) -> Result:
        begun.append(drive.principal.tenant)
        if drive.principal.tenant == BUSY.tenant:
            await provider_answers.wait()
        return Result()

    async with (
        calling(fresh_environment) as client,
        carrying_out(fresh_environment, {UPDATE_PERSON.name: update}),
    ):

        def send(principal: Principal) -> asyncio.Task[Reply]:
            command_id = str(uuid.uuid4())
            command = UpdatePerson.model_validate({"person_id": command_id, "first_name": "Ada"})
            envelope = client.envelope(
                UPDATE_PERSON,
                principal,
                command,
                command_id=command_id,
                request_id=command_id,
                deadline=time.time() + 60 * pace(),
            )
            return asyncio.create_task(client.send_command(envelope))

        async def share_is_driven() -> bool:
            return begun.count(BUSY.tenant) >= DRIVES_OF_TENANT

        busy = [send(BUSY) for _ in range(DRIVES_OF_TENANT + MORE)]
        await until(share_is_driven)
        answered = await send(OTHER)
        driven_meanwhile = begun.count(BUSY.tenant)
        provider_answers.set()
        answers = await asyncio.gather(*busy)

    assert answered.error is None
    assert (
        driven_meanwhile < DRIVES_OF_TENANT + MORE // 2
    )  # what arrives during a claim comes on top
    assert [answer.error for answer in answers] == [None] * (DRIVES_OF_TENANT + MORE)


async def record(database: Database, tenant: str, count: int) -> None:
    async with database.transaction() as connection:
        for _ in range(count):
            command = accepting(tenant=tenant)
            await inbox_acceptance.accept(connection, command, None, lease=False)


async def claimed(database: Database, **driven: int) -> Counter[str]:
    """By tenant, what a claim takes."""
    async with database.driver() as connection:
        found = await inbox.claim(connection, 10, LASTING_SECONDS, limit_of_tenant=5, driven=driven)
    return Counter(command.tenant for command in found)


async def test_a_claim_takes_what_a_tenant_may_have_driven_and_passes_over_one_at_its_limit(
    database: Database,
) -> None:
    await record(database, "full", 30)
    await record(database, "busy", 4)
    await record(database, "other", 3)

    taken = await claimed(database, full=5, busy=2, gone=5)

    assert taken == {"busy": 3, "other": 3}


async def test_what_a_busy_tenant_hides_from_one_claim_is_found_by_the_next(
    database: Database,
) -> None:
    await record(database, "busy", 30)
    await record(database, "other", 3)

    taken = await claimed(database, busy=2)
    then = await claimed(database, busy=5)

    assert taken == {"busy": 3}
    assert then == {"other": 3}


async def test_a_suspect_is_taken_of_a_tenant_that_has_more_of_them_than_places(
    database: Database,
) -> None:
    """Else they would hide what is due later from each claim."""
    await record(database, "busy", 30)
    await execute(
        database, f"UPDATE inbox SET faults = {SUSPECT_INTERRUPTIONS}, lease = command_id"
    )
    await record(database, "other", 3)

    taken = await claimed(database, busy=4)

    assert taken == {"busy": 1}


async def test_a_command_that_begins_anew_or_is_internal_has_its_tenant(
    database: Database,
) -> None:
    command = replace(
        arriving(uuid.uuid4(), "first"), tenant=""
    )  # as the release before records it
    await forget(database, await accept(database, command))
    async with database.transaction() as connection:
        again = replace(command, message_id="second", tenant=OTHER.tenant)
        await inbox_acceptance.accept(connection, again, None, lease=False)
        internal = InternalCommand(
            command_id=uuid.uuid4(),
            operation=UPDATE_PERSON.name,
            ordering_key=None,
            principal=OTHER,
            body={},
        )
        await inbox_acceptance.enqueue(connection, internal)

    assert await claimed(database) == {OTHER.tenant: 2}
