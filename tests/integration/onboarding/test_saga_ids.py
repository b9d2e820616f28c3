"""What a command's steps are named by, at each of its drives and after its database went back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
import pytest_asyncio
from sqlalchemy import text
from uuid_utils import uuid7

from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence.engine import Database
from services.onboarding.repository.sagas import saga_id_of
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import partner
from tests.integration.onboarding.shelf import open_shelf
from tests.support.infrastructure import Environment

OPERATION = "onboarding.update_person"


@pytest_asyncio.fixture
async def database(environment: Environment) -> AsyncIterator[Database]:
    async with open_shelf(environment) as opened:
        yield opened


async def driven(
    database: Database,
    command_id: UUID,
    *,
    drives: int = 1,
    forgotten: str | None = None,
    refused: str | None = None,
    message_id: str | None = None,
) -> set[UUID]:
    """The saga ids of one request's drives.

    Args:
        forgotten: the message of an earlier request under the command id, which was forgotten.
        refused: the message of a request that arrives between the drives, and is answered 409.
        message_id: of this request, when it matters.
    """
    found: set[UUID] = set()

    async def handle(drive: Drive, _: Any) -> Result:
        found.add(await saga_id_of(drive))
        return Result()

    leased = await driving.accept(database, OPERATION, partner(), command_id=command_id)
    async with database.transaction() as connection:
        await connection.execute(
            text("UPDATE inbox SET forgotten_messages = :messages WHERE command_id = :id"),
            {"id": command_id, "messages": [forgotten] if forgotten else []},
        )
    if message_id is not None:
        leased = replace(leased, message_id=message_id)
    for _ in range(drives):
        await driving.drive(database, {OPERATION: handle}, leased, partner(), None)
        if refused is not None:
            await driving.refuse(database, OPERATION, partner(), command_id, refused)
    async with database.transaction() as connection:
        await connection.execute(
            text("DELETE FROM inbox WHERE command_id = :id"), {"id": command_id}
        )
    return found


def keyed() -> UUID:
    """The command id of a request with an Idempotency-Key."""
    return uuid5(uuid4(), "key")


def unkeyed() -> UUID:
    return UUID(bytes=uuid7().bytes)


@pytest.mark.parametrize("made", [keyed, unkeyed])
async def test_every_drive_of_a_request_has_the_same_saga_id(database: Database, made: Any) -> None:
    assert len(await driven(database, made(), drives=2)) == 1


async def test_a_later_drive_does_not_write_the_origin_again(database: Database) -> None:
    command_id = keyed()
    versions: set[str] = set()

    async def handle(drive: Drive, _: Any) -> Result:
        await saga_id_of(drive)
        async with database.transaction() as connection:
            row = await connection.execute(
                text("SELECT CAST(xmin AS text) FROM saga_origin WHERE command_id = :id"),
                {"id": command_id},
            )
            versions.add(row.scalar_one())
        return Result()

    leased = await driving.accept(database, OPERATION, partner(), command_id=command_id)
    await driving.drive(database, {OPERATION: handle}, leased, partner(), None)
    await driving.drive(database, {OPERATION: handle}, leased, partner(), None)

    assert len(versions) == 1


async def test_a_key_that_comes_again_when_it_is_no_longer_kept_names_another_saga(
    database: Database,
) -> None:
    command_id = keyed()

    first = await driven(database, command_id)
    second = await driven(database, command_id)
    third = await driven(database, command_id)

    assert len(first | second | third) == 3


async def test_a_request_that_was_forgotten_under_another_key_changes_nothing_for_a_key_that_comes_again(
    database: Database,
) -> None:
    async def handle(drive: Drive, _: Any) -> Result:
        await saga_id_of(drive)
        return Result()

    other, command_id = keyed(), keyed()
    leased = await driving.accept(database, OPERATION, partner(), command_id=other)
    await driving.drive(database, {OPERATION: handle}, leased, partner(), None)
    async with database.transaction() as connection:
        await connection.execute(
            text("UPDATE inbox SET forgotten_messages = :messages WHERE command_id = :id"),
            {"id": other, "messages": [leased.message_id]},
        )

    first = await driven(database, command_id)
    second = await driven(database, command_id)

    async with database.transaction() as connection:
        await connection.execute(text("DELETE FROM inbox WHERE command_id = :id"), {"id": other})
    assert first.isdisjoint(second)


async def test_a_key_that_comes_again_after_the_database_went_back_names_the_same_saga(
    database: Database,
) -> None:
    command_id = keyed()
    before = await driven(database, command_id)
    async with database.transaction() as connection:
        await connection.execute(
            text("DELETE FROM saga_origin WHERE command_id = :id"), {"id": command_id}
        )

    after = await driven(database, command_id)

    assert before == after


async def test_a_request_that_was_told_that_nothing_was_started_gives_its_place_to_the_next(
    database: Database,
) -> None:
    command_id = keyed()
    before = await driven(database, command_id)
    async with database.transaction() as connection:
        row = await connection.execute(
            text("SELECT message_id FROM saga_origin WHERE command_id = :id"), {"id": command_id}
        )
        forgotten = row.scalar_one()

    after = await driven(database, command_id, forgotten=forgotten)

    assert before == after


async def test_a_late_redelivery_of_the_first_request_that_is_refused_does_not_give_its_place_away(
    database: Database,
) -> None:
    command_id = keyed()
    first = await driven(database, command_id)
    async with database.transaction() as connection:
        row = await connection.execute(
            text("SELECT message_id FROM saga_origin WHERE command_id = :id"), {"id": command_id}
        )
        message_id = row.scalar_one()

    second = await driven(database, command_id, drives=2, refused=message_id)

    assert len(second) == 1
    assert first.isdisjoint(second)


async def test_what_the_release_before_has_begun_goes_on_under_its_own_saga_id(
    database: Database,
) -> None:
    command_id, message_id = keyed(), str(uuid4())
    begun = uuid5(command_id, message_id)
    async with database.transaction() as connection:
        await connection.execute(
            text(
                "INSERT INTO saga_steps (saga_id, name, tenant, customer_id, operation, idempotency_key,"
                " compensation) VALUES (:saga_id, 'update_identity', 't', :any, 'o', :any, false)"
            ),
            {"saga_id": begun, "any": uuid4()},
        )

    assert await driven(database, command_id, message_id=message_id) == {begun}
