"""Dead letters, on a real broker: looking loses and reorders nothing, replaying takes what was asked for."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import aio_pika
import msgspec
import pytest
import pytest_asyncio
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from uuid_utils import uuid7

from libs.contracts.principal import Family, Principal
from libs.messaging import dead_letters
from libs.messaging.dead_letters import (
    DeadLetter,
    DeadLetters,
    NotReplayable,
    open_dead_letters,
)
from libs.messaging.envelope import Envelope, encode
from libs.messaging.queue_depths import ready_messages
from libs.messaging.topology import dead_queue, dead_queues, declare_durable_queue
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.waiting import eventually

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")
READABLE = 4


def an_envelope(command_id: str) -> Envelope:
    return Envelope(
        id=command_id,
        message_id=str(uuid7()),
        request_id="request",
        operation="onboarding.update_business",
        principal=PRINCIPAL,
        deadline=0.0,
        body=msgspec.Raw(b"{}"),
    )


@pytest_asyncio.fixture
async def channel(environment: Environment) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as opened:
        yield opened


@pytest_asyncio.fixture
async def letters(environment: Environment) -> AsyncIterator[DeadLetters]:
    async with open_dead_letters(environment.amqp_url) as opened:
        yield opened


@pytest_asyncio.fixture
async def queue(channel: AbstractChannel) -> AsyncIterator[str]:
    """A commands queue of which commands 0 to 3 and then something unreadable died."""
    name = f"{uuid.uuid4()}.commands"
    await declare_durable_queue(channel, name)
    for number in range(READABLE):
        envelope = an_envelope(f"command-{number}")
        await channel.default_exchange.publish(
            Message(encode(envelope), message_id=envelope.message_id, user_id="gateway"), name
        )
    await channel.default_exchange.publish(Message(b"\xff"), name)
    alive = await channel.get_queue(name)
    for number in range(READABLE + 1):
        message = await alive.get(timeout=5 * pace())
        await message.reject(requeue=False)
        await until_count(channel, dead_queue(name), number + 1)
    yield name
    await channel.queue_delete(name)
    await channel.queue_delete(dead_queue(name))


async def until_count(channel: AbstractChannel, queue: str, count: int) -> None:
    async with asyncio.timeout(10 * pace()):
        while await ready_messages(channel, queue) != count:
            await asyncio.sleep(0.02)


async def ids(letters: DeadLetters, queue: str, limit: int = 100) -> list[str | None]:
    found = await letters.look(dead_queue(queue), limit=limit)
    return [letter.envelope.id if letter.envelope else None for letter in found]


ALL = ["command-0", "command-1", "command-2", "command-3", None]


async def test_looking_loses_nothing_and_keeps_the_order(
    letters: DeadLetters, channel: AbstractChannel, queue: str
) -> None:
    assert await ids(letters, queue, limit=2) == ALL[:2]
    for _ in range(30):  # beyond the delivery limit that a broker sets by itself
        assert await ids(letters, queue) == ALL

    async def all_back() -> bool:
        return await ready_messages(channel, dead_queue(queue)) == len(ALL)

    await eventually("the broker has taken back what was looked at", all_back)


async def test_a_letter_tells_when_it_was_sent_and_why_it_died(
    letters: DeadLetters, queue: str
) -> None:
    first, *_, unreadable = await letters.look(dead_queue(queue))

    now = datetime.now(UTC)
    assert first.reason == "rejected"
    assert first.sent_at is not None
    assert now - timedelta(minutes=1) < first.sent_at <= now
    assert first.died_at is not None
    assert now - timedelta(minutes=1) < first.died_at <= now
    assert unreadable.envelope is None
    assert unreadable.sent_at is None
    again = await letters.look(dead_queue(queue))
    assert again[-1].id == unreadable.id


async def test_a_letter_that_is_accepted_is_gone_and_the_others_stay_in_order(
    letters: DeadLetters, queue: str
) -> None:
    accepted: list[DeadLetter] = []

    async def accept(letter: DeadLetter) -> None:
        if letter.envelope is None:
            raise NotReplayable("it cannot be read")
        accepted.append(letter)

    replayed = await letters.remove(
        dead_queue(queue),
        lambda letter: letter.has_id("command-1") or letter.envelope is None,
        accept,
    )

    assert [letter.id for letter in replayed.removed] == [letter.id for letter in accepted]
    assert [letter.sender for letter in accepted] == ["gateway"]
    assert [(letter.envelope, why) for letter, why in replayed.left] == [
        (None, "it cannot be read")
    ]
    assert await ids(letters, queue) == ["command-0", "command-2", "command-3", None]


async def test_many_letters_take_longer_than_the_deadline_of_one_page(
    letters: DeadLetters, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, passed = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(dead_letters, "TOGETHER", 1)
    # All together they take less than the heartbeats of the connection allow for.
    monkeypatch.setattr(dead_letters, "WORK_SECONDS", 6.0)
    monkeypatch.setattr(loop, "time", lambda: real() + passed)

    async def accept(letter: DeadLetter) -> None:
        nonlocal passed
        passed += dead_letters.WORK_SECONDS / 3

    replayed = await letters.remove(dead_queue(queue), lambda _: True, accept)

    assert len(replayed.removed) == len(ALL)
    assert passed > dead_letters.WORK_SECONDS


async def test_a_letter_that_is_not_recorded_stays(letters: DeadLetters, queue: str) -> None:
    async def accept(letter: DeadLetter) -> None:
        if letter.has_id("command-1"):
            raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError):
        await letters.remove(dead_queue(queue), lambda _: True, accept)

    assert await ids(letters, queue) == ALL[1:]


async def test_letters_held_by_somebody_who_dies_come_back_in_order(
    environment: Environment, letters: DeadLetters, channel: AbstractChannel, queue: str
) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    held = await (await connection.channel()).get_queue(dead_queue(queue))
    for _ in range(3):
        await held.get(timeout=5 * pace())

    await connection.close()

    await until_count(channel, dead_queue(queue), len(ALL))
    assert await ids(letters, queue) == ALL


async def test_a_queue_that_was_never_declared_is_empty(letters: DeadLetters) -> None:
    assert await letters.look("no.such.queue") == []


def test_every_service_with_commands_has_a_dead_queue() -> None:
    assert "onboarding.commands.dead" in dead_queues()
    assert "ledger_read.commands.dead" not in dead_queues()
