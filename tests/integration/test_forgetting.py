"""A command of which nothing was started is forgotten when its caller was told so, and goes on when it was not."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractExchange, AbstractQueue

from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import BanksideError, Invalid, OutcomePending, Unavailable
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.handling.forgetting import FORGETTING_SECONDS, NOT_KNOWN_WHETHER_TOLD
from libs.messaging.envelope import Reply, decode_replies, decode_reply, encode
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.topology import COMMANDS, REPLIES
from libs.persistence import forgetting, inbox, inbox_acceptance, parking
from libs.persistence.engine import Database
from libs.persistence.inbox_acceptance import KnownCommand
from libs.runtime.process import Process
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.replica import TRACES
from tests.integration.tables import define, execute, rows
from tests.integration.test_command_driving import envelope_of, processes
from tests.integration.test_inbox import accepting, claimed, leased
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.stack import ServiceProcess

ITS_DEADLINE_IS_OVER = "UPDATE inbox SET deadline = 1"


class Service:
    """The person update: the first drive ends by this error when the test lets it, all others succeed."""

    def __init__(self, error: BanksideError) -> None:
        self.error = error
        self.drives = 0
        self.may_end = asyncio.Event()

    async def __call__(self, drive: Drive, command: UpdatePerson) -> Result:
        self.drives += 1
        if self.drives == 1:
            await self.may_end.wait()
            raise self.error
        return Result()

    async def has_begun(self) -> bool:
        return self.drives > 0


class Asker:
    """A caller with a reply queue of its own, which the test may delete."""

    def __init__(self, environment: Environment, commands: AbstractExchange, queue: AbstractQueue):
        self._environment = environment
        self._commands = commands
        self.queue = queue

    async def ask(self, seconds: float | None = None) -> str:
        """Send a command; its id. `seconds`: as of `envelope_of`."""
        async with calling(self._environment) as service_client:
            envelope = envelope_of(service_client, seconds=seconds)
        message = Message(encode(envelope), reply_to=self.queue.name, user_id="gateway")
        await self._commands.publish(message, UPDATE_PERSON.name)
        return envelope.id

    async def reply(self) -> Reply:
        message = await until(lambda: self.queue.get(fail=False, no_ack=True))
        (reply,) = decode_replies(message.body)
        return reply


@asynccontextmanager
async def asking(environment: Environment) -> AsyncIterator[Asker]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        commands = await channel.get_exchange(COMMANDS)
        queue = await channel.declare_queue(f"gateway.replies.{uuid.uuid4()}", exclusive=True)
        await queue.bind(REPLIES, queue.name)
        yield Asker(environment, commands, queue)


@asynccontextmanager
async def serving(environment: Environment, service: Service) -> AsyncIterator[tuple[Asker, Wire]]:
    """A replica, a caller, and the replica's way to the broker."""
    async with wire_to(environment.amqp_urls["onboarding"]) as wire:
        handlers = {UPDATE_PERSON.name: service}
        async with (
            carrying_out(environment, handlers, amqp_url=wire.url),
            asking(environment) as asker,
        ):
            yield asker, wire


async def the_row(database: Database) -> Any:
    (row,) = await rows(
        database,
        "SELECT finished_at IS NOT NULL AS finished, forgotten, forgetting, body, reply, parked_because,"
        " attempts FROM inbox",
    )
    return row


async def is_finished(database: Database) -> Any:
    row = await the_row(database)
    return row if row.finished else None


async def is_parked(database: Database) -> Sequence[Any]:
    return await rows(database, "SELECT 1 FROM inbox WHERE parked_at IS NOT NULL")


async def test_a_caller_that_is_told_frees_its_key(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    service.may_end.set()
    async with serving(fresh_environment, service) as (asker, _):
        await asker.ask()
        reply = await asker.reply()
        row = await until(lambda: is_finished(database))

    assert reply.error is not None
    assert reply.error.code == "unavailable"
    assert (row.forgotten, row.forgetting, row.body, row.reply) == (True, False, b"", None)
    assert service.drives == 1


async def test_a_command_whose_caller_is_gone_is_carried_out(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, _):
        await asker.ask()
        await until(service.has_begun)
        await asker.queue.delete()

        service.may_end.set()
        row = await until(lambda: is_finished(database))

    assert (row.forgotten, row.forgetting, row.attempts) == (False, False, 2)


async def test_a_command_whose_caller_was_told_at_a_stop_that_it_is_pending_is_carried_out(
    fresh_environment: Environment, database: Database
) -> None:
    service, deadlines = Service(Unavailable()), RequestDeadlines()
    async with (
        carrying_out(fresh_environment, {UPDATE_PERSON.name: service}),
        calling(fresh_environment, deadlines=deadlines) as service_client,
        Process("gateway").background("ending", service_client.end_replies_at_stop()),
    ):
        envelope = envelope_of(service_client, seconds=30 * pace())
        sending = asyncio.create_task(service_client.send_command(envelope))
        await until(service.has_begun)

        deadlines.bring_forward(1)
        with pytest.raises(OutcomePending):
            await sending
        service.may_end.set()
        row = await until(lambda: is_finished(database))

    assert (row.forgotten, row.forgetting, row.attempts) == (False, False, 2)
    assert decode_reply(row.reply).error is None


async def test_a_command_of_which_too_many_requests_were_refused_goes_on_and_its_caller_is_answered(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, _):
        await asker.ask()
        await until(service.has_begun)
        await execute(
            database,
            "UPDATE inbox SET forgotten_messages ="
            f" array_fill('refused:any'::text, ARRAY[{forgetting.MOST_NOTES}])",
        )

        service.may_end.set()
        row = await until(lambda: is_finished(database))
        reply = await asker.reply()

    assert (row.forgotten, row.forgetting, row.attempts) == (False, False, 2)
    assert decode_reply(row.reply).error is None
    assert reply.error is None


async def test_what_is_wrong_with_a_request_is_stored_when_its_caller_is_gone(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Invalid([{"loc": ["body"], "msg": "m", "type": "value_error"}]))
    async with serving(fresh_environment, service) as (asker, _):
        await asker.ask()
        await until(service.has_begun)
        await asker.queue.delete()

        service.may_end.set()
        row = await until(lambda: is_finished(database))

    stored = decode_reply(row.reply).error
    assert stored is not None
    assert (stored.code, row.forgotten, service.drives) == ("invalid", False, 1)


async def test_a_command_goes_on_while_there_is_no_session_to_tell_its_caller_by(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, wire):
        await asker.ask()
        await until(service.has_begun)
        wire.is_open = False
        wire.cut()
        before = wire.connections

        async def is_without_session() -> bool:
            return wire.connections > before

        await until(is_without_session)
        service.may_end.set()
        row = await until(lambda: is_finished(database))
        wire.is_open = True

    assert (row.forgotten, row.attempts) == (False, 2)
    assert decode_reply(row.reply).error is None


async def test_a_caller_of_whom_it_is_not_known_whether_it_was_told_is_told_again(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, wire):
        await asker.ask()
        await until(service.has_begun)
        wire.silence()  # the reply arrives, its confirm does not
        service.may_end.set()
        first = await asker.reply()
        unconfirmed = await the_row(database)

        wire.cut()
        row = await until(lambda: is_finished(database))
        second = await asker.reply()

    assert (unconfirmed.forgetting, unconfirmed.finished) == (True, False)
    assert unconfirmed.body != b""
    assert [r.error.code for r in (first, second) if r.error] == ["unavailable"] * 2
    assert (row.forgotten, row.forgetting, service.drives) == (True, False, 1)


async def test_a_command_of_which_that_stays_unknown_is_parked_and_goes_on_when_retried(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, wire):
        command_id = await asker.ask()
        await until(service.has_begun)
        wire.silence()
        service.may_end.set()
        await asker.reply()
        await asker.queue.delete()
        wire.cut()
        await until(lambda: rows(database, "SELECT 1 FROM inbox WHERE attempts > 2"))
        await execute(database, ITS_DEADLINE_IS_OVER)

        await until(lambda: is_parked(database))
        left = await the_row(database)
        drives = service.drives
        async with database.transaction() as connection:
            await parking.retry(connection, uuid.UUID(command_id))
        row = await until(lambda: is_finished(database))

    assert (left.parked_because, left.finished, drives) == (NOT_KNOWN_WHETHER_TOLD, False, 1)
    assert left.body != b""
    assert (row.forgotten, service.drives) == (False, 2)
    assert decode_reply(row.reply).error is None


async def test_a_repeated_request_waits_while_its_command_is_being_forgotten(
    database: Database,
) -> None:
    command = await leased(database)
    async with inbox.fenced(database, command) as connection:
        await forgetting.begin(connection, command, Unavailable.code)

    async with database.transaction() as connection:
        known = await inbox_acceptance.accept(
            connection, accepting(command.command_id), None, lease=True
        )

    assert known == KnownCommand(False, "hash", b"{}", None)
    await execute(database, "UPDATE inbox SET lease_until = now() - interval '1 second'")
    async with database.driver() as connection:
        (claim,) = await inbox.claim(connection, 10)
    assert claim.forgetting
    async with inbox.fenced(database, claim) as connection:
        await forgetting.forget(connection, claim)
    assert await claimed(database) == []


@asynccontextmanager
async def replica_to_kill(environment: Environment, folder: Path) -> AsyncIterator[ServiceProcess]:
    await define(environment, "onboarding", *TRACES)
    async with processes(environment, folder, 1) as (replica,):
        yield replica


async def killed_at(
    database: Database, replica: ServiceProcess, point: str, refused: Callable[[], Awaitable[None]]
) -> None:
    """Kill the replica at the point, which it reaches once the drive of what `refused` sends has ended by an error.
    What it leased is free again.
    """
    await execute(
        database,
        "UPDATE ending SET error = 'unavailable'",
        "UPDATE gate SET open = false",
        "DELETE FROM inbox",
        "DELETE FROM drives",
    )
    await replica.start(BANKSIDE_CRASH_AT=f"onboarding.{point}")
    await refused()
    await execute(database, "UPDATE gate SET open = true")
    assert await replica.ended() == -9
    await execute(
        database,
        "UPDATE inbox SET lease_until = now()",  # as if later
        "UPDATE ending SET error = NULL",
    )


async def test_crashes_while_a_command_is_forgotten_have_its_caller_told_and_nothing_started(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    async with (
        replica_to_kill(fresh_environment, tmp_path) as replica,
        asking(fresh_environment) as asker,
    ):

        async def refused() -> None:
            await asker.ask()
            await until(lambda: rows(database, "SELECT 1 FROM drives"))

        await killed_at(database, replica, "forgetting", refused)
        replica.spawn(BANKSIDE_CRASH_AT="onboarding.told")
        ended = await replica.ended()
        unfinished = await the_row(database)
        await execute(database, "UPDATE inbox SET lease_until = now()")
        await replica.start()

        row = await until(lambda: _decided(database))
        told = (await asker.reply()).error
        effects = await rows(database, "SELECT 1 FROM effects")

    assert (ended, unfinished.finished) == (-9, False)
    assert told is not None
    assert told.code == "unavailable"
    assert (row.forgotten, effects) == (True, [])


async def test_after_a_crash_a_command_whose_caller_is_gone_is_parked_unless_it_was_to_go_on(
    fresh_environment: Environment, database: Database, tmp_path: Path
) -> None:
    async with replica_to_kill(fresh_environment, tmp_path) as replica:
        for point, is_parked_then in (
            ("forgetting", True),
            ("not_told", True),
            ("going_on", False),
        ):
            async with asking(fresh_environment) as asker:

                async def refused(asker: Asker = asker) -> None:
                    await asker.ask()
                    await until(lambda: rows(database, "SELECT 1 FROM drives"))
                    await asker.queue.delete()

                await killed_at(database, replica, point, refused)
                await execute(database, ITS_DEADLINE_IS_OVER)
                await replica.start()
                row = await until(lambda: _decided(database))
                await replica.kill()

            effects = await rows(database, "SELECT 1 FROM effects")
            assert not row.forgotten, point
            assert (row.parked_because == NOT_KNOWN_WHETHER_TOLD) is is_parked_then, point
            assert len(effects) == (0 if is_parked_then else 1), point


async def _decided(database: Database) -> Any:
    row = await the_row(database)
    return row if row.finished or row.parked_because else None


async def test_nothing_is_forgotten_shortly_before_its_caller_gives_up(
    fresh_environment: Environment, database: Database
) -> None:
    service = Service(Unavailable())
    async with serving(fresh_environment, service) as (asker, _):
        await asker.ask(3.6)
        await until(service.has_begun)
        [(deadline,)] = await rows(database, "SELECT deadline FROM inbox")

        async def is_late() -> bool:
            return bool(time.time() > deadline - 0.8 * FORGETTING_SECONDS)

        await until(is_late)
        service.may_end.set()
        row = await until(lambda: is_finished(database))

    assert (row.forgotten, row.attempts) == (False, 2)
