"""A command of which nothing was started: its key is free again, and the message that was told so has no effect."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

from libs.contracts.errors import Unavailable
from libs.persistence import forgetting, inbox, inbox_acceptance
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand, NewCommand
from tests.integration.tables import execute, finish, rows


def arriving(command_id: UUID, message_id: str, body_hash: str = "hash") -> NewCommand:
    return NewCommand(
        command_id=command_id,
        operation="onboarding.onboard_customer",
        message_id=message_id,
        request_id="request",
        principal=b"{}",
        tenant="tenant",
        body=b"{}",
        body_hash=body_hash,
        reply_to=None,
        deadline=0.0,
        keep_for_ever=True,
        has_place=True,
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


async def test_what_is_begun_anew_to_be_kept_for_ever_is_kept(database: Database) -> None:
    command_id = uuid4()
    purgeable = replace(arriving(command_id, "first"), keep_for_ever=False)
    await forget(database, await accept(database, purgeable))

    again = await accept(database, arriving(command_id, "of a letter"))

    assert isinstance(again, inbox.Leased)
    async with database.driver() as connection:
        kept = "SELECT keep_for_ever FROM inbox WHERE command_id = $1"
        assert await connection.fetchval(kept, command_id) is True
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


async def test_a_request_that_was_refused_does_not_begin_a_command_that_was_forgotten_since(
    database: Database,
) -> None:
    command_id = uuid4()
    first = await accept(database, arriving(command_id, "first"))
    refused = [
        await accept(database, arriving(command_id, name, body_hash="other"))
        for name in ("second", "second", "third")
    ]
    await forget(database, first)

    late = [await accept(database, arriving(command_id, name)) for name in ("second", "third")]
    new = await accept(database, arriving(command_id, "new"))

    assert refused == [KnownCommand(False, "hash", b"{}", None)] * 3
    assert late == [KnownCommand(True, None, b"", None)] * 2
    assert isinstance(new, inbox.Leased)
    assert await notes(database, command_id) == ["refused:second", "refused:third", "first"]
    await finish(database, new, b"{}")


async def test_what_is_refused_of_a_final_command_is_not_noted(database: Database) -> None:
    command_id = uuid4()
    first = await accept(database, arriving(command_id, "first"))
    assert isinstance(first, inbox.Leased)
    await finish(database, first, b"{}")

    second = await accept(database, arriving(command_id, "second"))

    assert second == KnownCommand(False, "hash", b"", b"{}")
    assert await notes(database, command_id) == []


async def test_a_command_of_which_too_many_requests_were_refused_is_not_forgotten(
    database: Database,
) -> None:
    command_id = uuid4()
    first = await accept(database, arriving(command_id, "first"))
    await note_all_but(database, command_id, 1)

    for name in ("last that is noted", "beyond"):
        await accept(database, arriving(command_id, name))

    assert await begin_to_forget(database, first) is False
    assert (await notes(database, command_id))[-1] == "refused:last that is noted"
    assert isinstance(first, inbox.Leased)
    await finish(database, first, b"{}")


async def test_every_request_that_is_refused_while_a_command_is_being_forgotten_is_noted(
    database: Database,
) -> None:
    command_id = uuid4()
    first = await accept(database, arriving(command_id, "first"))
    await note_all_but(database, command_id, 1)
    begun = await begin_to_forget(database, first)
    for name in ("second", "third"):
        await accept(database, arriving(command_id, name))
    await forget(database, first)

    late = [await accept(database, arriving(command_id, name)) for name in ("second", "third")]

    assert begun
    assert late == [KnownCommand(True, None, b"", None)] * 2


async def notes(database: Database, command_id: UUID) -> list[str]:
    (row,) = await rows(
        database, f"SELECT forgotten_messages FROM inbox WHERE command_id = '{command_id}'"
    )
    return list(row.forgotten_messages)


async def note_all_but(database: Database, command_id: UUID, left: int) -> None:
    """As if so many requests had been refused that only `left` more are noted."""
    count = forgetting.MOST_NOTES - left
    await execute(
        database,
        f"UPDATE inbox SET forgotten_messages = array_fill('refused:any'::text, ARRAY[{count}])"
        f" WHERE command_id = '{command_id}'",
    )


async def begin_to_forget(database: Database, leased: inbox.Leased | KnownCommand | None) -> bool:
    assert isinstance(leased, inbox.Leased)
    async with inbox.fenced(database, leased) as connection:
        return await forgetting.begin(connection, leased, Unavailable.code)
