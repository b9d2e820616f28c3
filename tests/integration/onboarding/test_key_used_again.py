"""An Idempotency-Key that is used again after its retention: a new command with an id that was used before."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from libs.contracts.binding import bind
from libs.contracts.onboarding_operations import UPDATE_BUSINESS, UPDATE_PERSON
from libs.contracts.operation import Operation
from libs.persistence.inbox import Leased
from services.onboarding.ordering import ordering_key
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, business
from tests.integration.onboarding.handling import ONBOARDING, Handling


async def accept(handling: Handling, operation: Operation, command_id: UUID) -> Leased:
    key = ordering_key(handling.principal.tenant, await handling.customer_id())
    return await driving.accept(
        handling.database, operation.name, handling.principal, key, command_id=command_id
    )


@pytest.mark.parametrize(
    ("operation", "bodies"),
    [
        (UPDATE_BUSINESS, (b'{"business": {"dba": "First"}}', b'{"business": {"dba": "Second"}}')),
        (UPDATE_PERSON, (b'{"email": "first@example.com"}', b'{"email": "second@example.com"}')),
    ],
)
async def test_it_changes_the_customer_a_second_time(
    handling: Handling, operation: Operation, bodies: tuple[bytes, bytes]
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    person = "SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1"
    ids = {
        "customer_id": str(await handling.customer_id()),
        "person_id": str(await handling.value(person)),
    }
    path = {name: ids[name] for name in operation.path_fields}
    command_id = uuid4()

    for body in bodies:
        command = bind(operation, path, body=body)
        leased = await accept(handling, operation, command_id)
        await driving.drive_to_end(
            handling.database, handling.handlers, leased, handling.principal, command
        )
        await a_day_later(handling, command_id)

    done = (
        "SELECT count(DISTINCT saga_id) FROM saga_steps"
        " WHERE tenant = :tenant AND command_id = :id AND state = 'done'"
    )
    assert await handling.value(done, id=command_id) == 2


async def a_day_later(handling: Handling, command_id: UUID) -> None:
    for statement in (
        "DELETE FROM inbox WHERE command_id = :id",
        "UPDATE saga_steps SET last_attempt_at = last_attempt_at - interval '25 hours' WHERE command_id = :id",
    ):
        async with handling.database.transaction() as connection:
            await connection.execute(text(statement), {"id": command_id})
