"""What a caller is told when the broker or the service behind it fails, and what becomes of the command."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aio_pika
import pytest
import pytest_asyncio
from aio_pika.abc import AbstractIncomingMessage

from libs.contracts import onboarding_operations as onboarding
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import Unavailable
from libs.contracts.exact_json import encode
from libs.contracts.operating import wires
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.messaging.envelope import decode_command
from libs.messaging.topology import REPLIES, commands_queue
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.gateway.desk import Desk, answering, carrying_out, running_gateway, until
from tests.support import people
from tests.support.api import Answer, Api
from tests.support.infrastructure import Environment, Infrastructure
from tests.support.pace import pace
from tests.support.queues import declare_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

TARGET = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
READ = "/partner/reseller/customers/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
BODY = {"first_name": "Ada"}
DEADLINE_SECONDS = 4.1
LONG_SECONDS = 25.0


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


@dataclass(frozen=True)
class WiredGateway:
    """A gateway whose way to the broker the test can break, and which waits for long."""

    environment: Environment
    wire: Wire
    desk: Desk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wired(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WiredGateway]:
    environment = infrastructure.create()
    folder = tmp_path_factory.mktemp("gateway")
    await declare(environment)
    async with wired_gateway(environment, folder, LONG_SECONDS) as wired:
        yield wired
    infrastructure.drop(environment)


@asynccontextmanager
async def wired_gateway(
    environment: Environment, folder: Path, deadline_seconds: float
) -> AsyncIterator[WiredGateway]:
    async with wire_to(environment.amqp_url) as wire:
        through_wire = environment.with_urls(amqp_url=wire.url)
        async with running_gateway(
            through_wire, folder, BANKSIDE_GATEWAY_DEADLINE_SECONDS=str(deadline_seconds)
        ) as desk:
            yield WiredGateway(environment, wire, desk)


async def declare(environment: Environment) -> None:
    """The queues of onboarding, as if it had been there once."""
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")


async def both(api: Api, key: str | None = None) -> list[str]:
    """The codes of a write and a read at once, told before a deadline has passed by far."""
    async with asyncio.timeout((DEADLINE_SECONDS + 4) * pace()):
        write, read = await asyncio.gather(api.patch(TARGET, BODY, key), api.get(READ))
    return [write.code, read.code]


async def final_answer(api: Api, key: str) -> Answer | None:
    answer = await api.patch(TARGET, BODY, key)
    return answer if answer.status == 200 else None


async def test_with_nobody_behind_it_nothing_is_lost_and_nobody_waits_beyond_the_deadline(
    fresh_environment: Environment, tmp_path: Path, drives: list[uuid.UUID]
) -> None:
    async with wired_gateway(fresh_environment, tmp_path, DEADLINE_SECONDS) as wired:
        wire = wired.wire
        api, key = await wired.desk.new_api(), people.new_key()

        never_there = await both(api, key)
        await declare(fresh_environment)
        away = await both(api, key)
        wire.is_open = False
        wire.cut()
        await until(lambda: is_away(api))
        cut_off = await both(api)
        wire.is_open = True
        async with service(fresh_environment, drives):
            final = await until(lambda: final_answer(api, key))

    assert never_there == ["unavailable", "unavailable"]
    assert away == ["outcome_pending", "provider_timeout"]
    assert cut_off == ["unavailable", "unavailable"]
    assert final.is_replayed
    assert len(drives) == 1


async def test_a_command_whose_caller_was_told_504_by_its_gateway_is_not_forgotten(
    wired: WiredGateway, drives: list[uuid.UUID]
) -> None:
    async def update(drive: Drive, _command: UpdatePerson) -> Result:
        drives.append(drive.command_id)
        if len(drives) == 1:
            raise Unavailable
        return Result()

    environment, wire = wired.environment, wired.wire
    api, key = await wired.desk.new_api(), people.new_key()
    # The gateway gives up long before the deadline: its session is lost.
    write = await silenced_write(wired, api, key)
    await until(lambda: has_arrived(environment))
    wire.cut()
    pending = await write
    async with carrying_out(environment, {onboarding.UPDATE_PERSON.name: update}):
        await until(lambda: twice(drives))
        final = await until(lambda: final_answer(api, key))

    assert pending.code == "outcome_pending"
    assert (final.status, final.is_replayed) == (200, True)
    assert len(set(drives)) == 1


async def silenced_write(wired: WiredGateway, api: Api, key: str) -> asyncio.Task[Answer]:
    """A write that was sent to the broker, of which the gateway hears nothing."""
    await wired.desk.stack.services["gateway"].ready()  # the test before has cut its connection
    wired.wire.sent = b""
    wired.wire.silence()
    write = asyncio.create_task(api.patch(TARGET, BODY, key))
    await until(lambda: was_sent(wired.wire))
    return write


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
    wired: WiredGateway, drives: list[uuid.UUID]
) -> None:
    api, key = await wired.desk.new_api(), people.new_key()

    write = await silenced_write(wired, api, key)
    await until(lambda: has_arrived(wired.environment))
    wired.wire.cut()
    pending = await write
    async with service(wired.environment, drives):
        final = await until(lambda: final_answer(api, key))

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (final.status, final.is_replayed) == (200, True)
    assert len(drives) == 1


async def test_a_session_in_which_nothing_is_confirmed_is_replaced(
    wired: WiredGateway, drives: list[uuid.UUID]
) -> None:
    """All else of it works: heartbeats, deliveries, answers to requests."""
    async with service(wired.environment, drives):
        api = await wired.desk.new_api()
        await until(lambda: succeeds(api))
        drives.clear()
        wired.wire.swallow_confirms()
        connections = wired.wire.connections

        unconfirmed = await api.patch(TARGET, BODY)
        driven = len(drives)
        await until(lambda: succeeds(api))

    assert (unconfirmed.status, driven) == (200, 1)
    assert wired.wire.connections == connections + 1


async def test_writes_whose_confirms_end_by_a_fin_behind_a_burst_of_frames_are_pending_or_answered(
    wired: WiredGateway, drives: list[uuid.UUID]
) -> None:
    """The broker's last frames, all but the confirms, arrive together with the end of the connection. Replies may be
    among them.
    """
    writes_at_once = 40
    async with service(wired.environment, drives):
        api = await wired.desk.new_api()
        await until(lambda: succeeds(api))
        drives.clear()

        wired.wire.hold_answers()
        writes = [asyncio.create_task(api.patch(TARGET, BODY)) for _ in range(writes_at_once)]
        await until(lambda: has_driven(drives, writes_at_once))
        wired.wire.end_without_confirms()
        answers = await asyncio.gather(*writes)

    told = {(answer.status, answer.code) for answer in answers}
    assert told <= {(504, "outcome_pending"), (200, "200")}


async def test_a_reply_that_this_release_cannot_use_leaves_a_write_pending(
    wired: WiredGateway,
) -> None:
    replies = [
        {"error": {"code": "a_code_of_a_later_release"}},
        {"error": {"code": "internal_error"}},
    ]
    await wired.desk.stack.services["gateway"].ready()
    connection = await aio_pika.connect(wired.environment.amqp_url)
    async with connection, connection.channel() as channel:

        async def reply(message: AbstractIncomingMessage) -> None:
            envelope = decode_command(message.body)
            body = encode([{"id": envelope.id, "to": envelope.message_id} | replies.pop(0)])
            await to_asker.publish(
                aio_pika.Message(body, user_id="onboarding"),
                message.reply_to or "",
                mandatory=False,
            )

        to_asker = await channel.get_exchange(REPLIES)
        queue = await channel.get_queue("onboarding.commands")
        await queue.consume(reply, no_ack=True)
        api = await wired.desk.new_api()
        unknown, fault = [await api.patch(TARGET, BODY) for _ in range(2)]

    assert (unknown.status, unknown.code) == (504, "outcome_pending")
    assert (fault.status, fault.code) == (504, "outcome_pending")


async def succeeds(api: Api) -> bool:
    return (await api.patch(TARGET, BODY)).status == 200


async def has_driven(drives: list[uuid.UUID], count: int) -> bool:
    return len(drives) >= count


async def was_sent(wire: Wire) -> bool:
    return b'"onboarding.update_person"' in wire.sent


async def test_an_operators_write_whose_session_is_lost_is_pending_and_a_read_was_not_started(
    wired: WiredGateway,
) -> None:
    operator = await wired.desk.operator()
    target = f"/operator/wires/{uuid.uuid4()}"
    begun = asyncio.Semaphore(0)

    async def never(*_: object) -> Result:
        begun.release()
        await asyncio.Event().wait()
        raise AssertionError

    handlers = {wires.RESOLVE_WIRE.name: never, wires.GET_WIRE.name: never}
    async with answering(wired.environment, "payments", handlers):
        body = {"as": "ask", "reason": "a test"}
        write = asyncio.create_task(operator.post(f"{target}/resolve", body))
        read = asyncio.create_task(operator.get(target))
        async with asyncio.timeout(LONG_SECONDS * pace()):
            for _ in range(2):
                await begun.acquire()
            wired.wire.cut()
            answers = await asyncio.gather(write, read)

    assert [answer.code for answer in answers] == ["outcome_pending", "unavailable"]
    assert "look before you repeat" in answers[0].body["detail"]
