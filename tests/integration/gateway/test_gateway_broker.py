"""What a caller is told when the broker or the service behind it fails, and what becomes of the command."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage

from libs.contracts import onboarding_operations as onboarding
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import Unavailable
from libs.contracts.exact_json import encode
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.messaging.envelope import decode_command
from libs.messaging.topology import EVENTS, commands_queue, declare_service
from libs.persistence.engine import open_database
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.gateway.desk import Desk, carrying_out, running_gateway, until
from tests.integration.test_outbox import an_event, is_empty, record, relays, sequences
from tests.support import people
from tests.support.api import Answer, Api
from tests.support.infrastructure import Environment
from tests.support.own_servers import own_rabbitmq

TARGET = "/partner/reseller/customers/person/p1"
READ = "/partner/reseller/customers/c1"
BODY = {"first_name": "Ada"}
DEADLINE_SECONDS = 4.1
KEPT = "kept"


@pytest.fixture
def drives() -> list[uuid.UUID]:
    return []


@asynccontextmanager
async def service(environment: Environment, drives: list[uuid.UUID]) -> AsyncIterator[None]:
    async def update(drive: Drive, _command: UpdatePerson) -> Result:
        drives.append(drive.command_id)
        return Result()

    async with carrying_out(environment, {onboarding.UPDATE_PERSON.name: update}):
        yield


@asynccontextmanager
async def wired_gateway(environment: Environment, folder: Path) -> AsyncIterator[tuple[Desk, Wire]]:
    """A gateway whose way to the broker the test can break."""
    async with wire_to(environment.amqp_url) as wire:
        through_wire = environment.with_urls(amqp_url=wire.url)
        async with running_gateway(
            through_wire, folder, BANKSIDE_GATEWAY_DEADLINE_SECONDS=str(DEADLINE_SECONDS)
        ) as desk:
            yield desk, wire


async def declare(environment: Environment) -> None:
    """The queues of onboarding, as if it had been there once, and one that keeps every event."""
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
        kept = await channel.declare_queue(KEPT, durable=True)
        await kept.bind(EVENTS, "#")


async def timed(api: Api, key: str | None = None) -> tuple[Answer, Answer, float]:
    """A write and a read at once, and the seconds that both took."""
    started = time.monotonic()
    write, read = await asyncio.gather(api.patch(TARGET, BODY, key), api.get(READ))
    return write, read, time.monotonic() - started


async def final_answer(api: Api, key: str) -> Answer | None:
    answer = await api.patch(TARGET, BODY, key)
    return answer if answer.status == 200 else None


async def test_with_nobody_behind_it_nothing_is_lost_and_nobody_waits_beyond_the_deadline(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    async with wired_gateway(fresh_environment, tmp_path) as (desk, wire):
        api, key = await desk.new_api(), people.new_key()

        never_there = await timed(api, key)
        await declare(fresh_environment)
        away = await timed(api, key)
        wire.is_open = False
        wire.cut()
        await until(lambda: is_away(api))
        cut_off = await timed(api)
        wire.is_open = True
        async with service(fresh_environment, drives):
            final = await until(lambda: final_answer(api, key))

    assert [a.code for a in never_there[:2]] == ["unavailable", "unavailable"]
    assert [a.code for a in away[:2]] == ["outcome_pending", "provider_timeout"]
    assert DEADLINE_SECONDS - 0.5 < away[2] < DEADLINE_SECONDS + 4
    assert [a.code for a in cut_off[:2]] == ["unavailable", "unavailable"]
    assert cut_off[2] < DEADLINE_SECONDS
    assert final.is_replayed
    assert len(drives) == 1


async def test_a_command_whose_caller_was_told_504_by_its_gateway_is_not_forgotten(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    async def update(drive: Drive, _command: UpdatePerson) -> Result:
        drives.append(drive.command_id)
        if len(drives) == 1:
            raise Unavailable
        return Result()

    async with wire_to(fresh_environment.amqp_url) as wire:
        through_wire = fresh_environment.with_urls(amqp_url=wire.url)
        await declare(fresh_environment)
        # The gateway gives up long before the deadline: its session is lost.
        async with running_gateway(
            through_wire, tmp_path, BANKSIDE_GATEWAY_DEADLINE_SECONDS="25"
        ) as desk:
            api, key = await desk.new_api(), people.new_key()
            wire.silence()
            write = asyncio.create_task(api.patch(TARGET, BODY, key))
            await until(lambda: was_sent(wire))
            await until(lambda: has_arrived(fresh_environment))
            wire.cut()
            pending = await write
            async with carrying_out(fresh_environment, {onboarding.UPDATE_PERSON.name: update}):
                await until(lambda: twice(drives))
                final = await until(lambda: final_answer(api, key))

    assert pending.code == "outcome_pending"
    assert (final.status, final.is_replayed) == (200, True)
    assert len(set(drives)) == 1


async def has_arrived(environment: Environment) -> bool:
    """A command waits in the queue of onboarding."""
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        queue = await channel.declare_queue(commands_queue("onboarding"), passive=True)
        return bool(queue.declaration_result.message_count)


async def twice(drives: list[uuid.UUID]) -> bool:
    return len(drives) == 2


async def is_away(api: Api) -> bool:
    return (await api.get(READ)).code == "unavailable"


async def test_a_command_that_was_written_and_not_confirmed_is_pending_and_executes_once(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    async with wired_gateway(fresh_environment, tmp_path) as (desk, wire):
        api, key = await desk.new_api(), people.new_key()
        await declare(fresh_environment)

        wire.silence()
        write = asyncio.create_task(api.patch(TARGET, BODY, key))
        await until(lambda: was_sent(wire))
        wire.cut()
        pending = await write
        async with service(fresh_environment, drives):
            final = await until(lambda: final_answer(api, key))

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (final.status, final.is_replayed) == (200, True)
    assert len(drives) == 1


async def test_writes_whose_confirms_end_by_a_fin_behind_a_burst_of_frames_are_pending_or_answered(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    """The broker's last frames, all but the confirms, arrive together with the end of the connection. Replies may be
    among them.
    """
    writes_at_once = 40
    async with (
        wired_gateway(fresh_environment, tmp_path) as (desk, wire),
        service(fresh_environment, drives),
    ):
        api = await desk.new_api()
        await until(lambda: succeeds(api))
        drives.clear()

        wire.hold_answers()
        writes = [asyncio.create_task(api.patch(TARGET, BODY)) for _ in range(writes_at_once)]
        await until(lambda: has_driven(drives, writes_at_once))
        wire.end_without_confirms()
        answers = await asyncio.gather(*writes)

    told = {(answer.status, answer.code) for answer in answers}
    assert told <= {(504, "outcome_pending"), (200, "200")}


async def test_a_reply_that_this_release_cannot_use_leaves_a_write_pending(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    replies = [
        {"error": {"code": "a_code_of_a_later_release"}},
        {"error": {"code": "internal_error"}},
    ]
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with (
        connection,
        connection.channel() as channel,
        running_gateway(fresh_environment, tmp_path) as desk,
    ):
        await declare_service(channel, "onboarding")

        async def reply(message: AbstractIncomingMessage) -> None:
            envelope = decode_command(message.body)
            body = encode([{"id": envelope.id, "to": envelope.message_id} | replies.pop(0)])
            await channel.default_exchange.publish(
                aio_pika.Message(body), message.reply_to or "", mandatory=False
            )

        queue = await channel.get_queue("onboarding.commands")
        await queue.consume(reply, no_ack=True)
        api = await desk.new_api()
        unknown, fault = [await api.patch(TARGET, BODY) for _ in range(2)]

    assert (unknown.status, unknown.code) == (504, "outcome_pending")
    assert (fault.status, fault.code) == (504, "outcome_pending")


async def succeeds(api: Api) -> bool:
    return (await api.patch(TARGET, BODY)).status == 200


async def has_driven(drives: list[uuid.UUID], count: int) -> bool:
    return len(drives) >= count


async def was_sent(wire: Wire) -> bool:
    return b'"onboarding.update_person"' in wire.sent


async def test_a_killed_broker_loses_nothing_and_everybody_comes_back(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    may_end = asyncio.Event()

    async def update(drive: Drive, _command: UpdatePerson) -> Result:
        drives.append(drive.command_id)
        await may_end.wait()
        return Result()

    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    async with own_rabbitmq(fresh_environment.secrets) as rabbitmq:
        environment = fresh_environment.with_urls(amqp_url=rabbitmq.amqp_url)
        await declare(environment)
        async with (
            running_gateway(
                environment, tmp_path, BANKSIDE_GATEWAY_DEADLINE_SECONDS=str(DEADLINE_SECONDS)
            ) as desk,
            carrying_out(environment, {onboarding.UPDATE_PERSON.name: update}),
            relays(environment.amqp_url, database),
        ):
            api, key = await desk.new_api(), people.new_key()
            await record(database, an_event("p1", 1))
            await until(lambda: is_empty(database))
            write = asyncio.create_task(api.patch(TARGET, BODY, key))
            await until(lambda: begun(drives))
            await rabbitmq.settled()

            rabbitmq.kill()
            await record(database, an_event("p1", 2))
            pending = await write
            may_end.set()
            final = await until(lambda: final_answer(api, key), 60)
            another = await api.patch(TARGET, BODY)
            await until(lambda: is_empty(database), 60)
        kept = await kept_events(environment)
    await database.close()

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (final.status, final.is_replayed) == (200, True)
    assert another.status == 200
    assert len(drives) == 2
    assert sequences(kept, "p1") == [1, 2]


async def kept_events(environment: Environment) -> list[AbstractIncomingMessage]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        queue = await channel.get_queue(KEPT)
        kept = []
        while message := await queue.get(fail=False, no_ack=True):
            kept.append(message)
        return kept


async def begun(drives: list[uuid.UUID]) -> bool:
    return bool(drives)
