"""A tenant's share of the drives: commands of others are driven while one tenant has many due, or slow ones."""

from __future__ import annotations

import asyncio
import time
import uuid

from libs.contracts.customers import UpdatePerson
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.handling.driving import DRIVES_OF_TENANT
from libs.messaging.envelope import Reply
from libs.persistence import inbox, inbox_acceptance
from libs.persistence.engine import Database
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.test_inbox import LASTING_SECONDS, accepting
from tests.support.infrastructure import Environment
from tests.support.pace import pace

BUSY = Principal("busy", "Busy", Family.PARTNER, "sub_busy")
OTHER = Principal("other", "Other", Family.PARTNER, "sub_other")
MORE = 16
"""Commands of the busy tenant beyond its share."""


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
    assert driven_meanwhile == DRIVES_OF_TENANT
    assert [answer.error for answer in answers] == [None] * (DRIVES_OF_TENANT + MORE)


async def record(database: Database, tenant: str, count: int) -> set[uuid.UUID]:
    commands = [accepting(tenant=tenant) for _ in range(count)]
    async with database.transaction() as connection:
        for command in commands:
            await inbox_acceptance.accept(connection, command, None, lease=False)
    return {command.command_id for command in commands}


async def test_a_claim_takes_what_is_left_of_each_share_however_many_of_one_tenant_are_due(
    database: Database,
) -> None:
    busy = await record(database, "busy", 30)
    full = await record(database, "full", 3)
    others = await record(database, "another", 2) | await record(database, "third", 2)

    async with database.driver() as connection:
        claimed = await inbox.claim(
            connection,
            10,
            LASTING_SECONDS,
            limit_of_tenant=5,
            driven={"busy": 2, "full": 5, "gone": 5},
        )

    taken = {command.command_id for command in claimed}
    assert others < taken
    assert len(taken & busy) == 3
    assert not taken & full
    assert {command.tenant for command in claimed} == {"busy", "another", "third"}


async def test_of_more_than_a_claim_may_take_those_due_first_are_taken(database: Database) -> None:
    first = await record(database, "one", 2) | await record(database, "two", 2)
    await record(database, "three", 2)

    async with database.driver() as connection:
        claimed = await inbox.claim(connection, 4, LASTING_SECONDS, limit_of_tenant=4)

    assert {command.command_id for command in claimed} == first
