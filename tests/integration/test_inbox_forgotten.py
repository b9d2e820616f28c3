"""A command of which nothing was started: its key is free again, and the message that was told so has no effect."""

from __future__ import annotations

from uuid import UUID, uuid4

from libs.persistence import forgetting, inbox, inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from tests.integration.tables import finish


def arriving(command_id: UUID, message_id: str, body_hash: str = "hash") -> NewCommand:
    return NewCommand(
        command_id=command_id,
        operation="onboarding.onboard_customer",
        message_id=message_id,
        request_id="request",
        principal=b"{}",
        body=b"{}",
        body_hash=body_hash,
        reply_to=None,
        deadline=0.0,
        keep_for_ever=True,
    )


async def accept(database: Database, command: NewCommand) -> inbox.Leased | KnownCommand | None:
    async with database.transaction() as connection:
        return await inbox_acceptance.accept(connection, command, None, lease=True)


async def forget(database: Database, leased: inbox.Leased | KnownCommand | None) -> None:
    assert isinstance(leased, inbox.Leased)
    async with inbox.fenced(database, leased) as connection:
        await forgetting.forget(connection, leased)


async def test_a_forgotten_command_is_begun_anew_by_another_message(database: Database) -> None:
    command_id = uuid4()
    await forget(database, await accept(database, arriving(command_id, "first")))

    again = await accept(database, arriving(command_id, "second", body_hash="other"))

    assert isinstance(again, inbox.Leased)
    assert (again.message_id, again.attempts) == ("second", 1)
    await finish(database, again, b"{}")


async def test_a_redelivery_of_a_forgotten_message_has_no_effect(database: Database) -> None:
    command_id = uuid4()
    await forget(database, await accept(database, arriving(command_id, "first")))

    redelivered = await accept(database, arriving(command_id, "first"))

    assert isinstance(redelivered, KnownCommand)
    assert redelivered.is_redelivery
    async with database.driver() as connection:
        due = await inbox.claim(connection, 1000)
    assert command_id not in {command.command_id for command in due}


async def test_a_late_redelivery_of_a_forgotten_message_does_not_disturb_the_one_begun_anew(
    database: Database,
) -> None:
    command_id = uuid4()
    await forget(database, await accept(database, arriving(command_id, "first")))
    await forget(database, await accept(database, arriving(command_id, "second")))
    third = await accept(database, arriving(command_id, "third"))

    late = [await accept(database, arriving(command_id, name)) for name in ("first", "second")]

    assert all(isinstance(known, KnownCommand) and known.is_redelivery for known in late)
    assert isinstance(third, inbox.Leased)
    await finish(database, third, b"{}")


async def test_a_second_request_for_a_command_in_progress_is_no_redelivery(
    database: Database,
) -> None:
    command_id = uuid4()
    first = await accept(database, arriving(command_id, "first"))

    second = await accept(database, arriving(command_id, "second"))

    assert isinstance(second, KnownCommand)
    assert not second.is_redelivery
    assert isinstance(first, inbox.Leased)
    await finish(database, first, b"{}")
