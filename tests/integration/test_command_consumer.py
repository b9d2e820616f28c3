"""Commands are taken while they can be recorded; no outage of ours counts against them, and poison ends."""

from __future__ import annotations

import asyncio
import struct
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from structlog.testing import capture_logs

from libs.contracts.accounts import ListCustomerAccounts
from libs.contracts.errors import Unavailable
from libs.contracts.exact_json import encode
from libs.contracts.ledger_read_operations import LIST_CUSTOMER_ACCOUNTS
from libs.messaging import command_consumer, consumption, poison, session
from libs.messaging.broker import Broker
from libs.messaging.command_consumer import CommandConsumer
from libs.messaging.envelope import VERSION, Envelope
from libs.messaging.metrics import (
    CONSUMER_RESTARTS,
    DEAD_LETTERS,
    MESSAGES_REFUSED,
    QUEUE_MESSAGES,
)
from libs.messaging.topology import commands_queue, dead_queue, queries_queue
from tests.integration.amqp_wire import is_replaced, wire_to
from tests.integration.gateway.desk import calling
from tests.integration.readiness import is_not_ready, is_ready
from tests.integration.test_messaging import PRINCIPAL, ledger
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.pace import pace, waiting_pace
from tests.support.queues import declare_service, next_in
from tests.support.waiting import eventually
from tests.unit.messaging.test_versions import newer_envelope

SERVICE = "onboarding"
QUEUE = commands_queue(SERVICE)
HOLD_SECONDS = 0.2
BASIC_CANCEL = struct.pack(">HH", 60, 30)


class Inbox:
    """Records commands, unless its database is away."""

    def __init__(self) -> None:
        self.recorded: list[str] = []
        self.begun: list[str] = []
        self.at_once = 0
        self._at_once = 0
        self.is_there = asyncio.Event()
        self.is_there.set()

    async def accept(
        self, envelope: Envelope, _reply_to: str | None, _is_redelivered: bool
    ) -> None:
        self.begun.append(envelope.message_id)
        self._at_once += 1
        self.at_once = max(self.at_once, self._at_once)
        await self.is_there.wait()
        await asyncio.sleep(0)
        self._at_once -= 1
        self.recorded.append(envelope.message_id)

    async def ping(self) -> None:
        if not self.is_there.is_set():
            raise ConnectionError("away")


@pytest.fixture(autouse=True)
def _quickly_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(session, "WATCHES_PER_CHECK", 2)
    monkeypatch.setattr(consumption, "STALL_SECONDS", 1.0 * waiting_pace())
    monkeypatch.setattr(command_consumer, "HOLD_SECONDS", HOLD_SECONDS)


@asynccontextmanager
async def consuming(url: str, inbox: Inbox) -> AsyncIterator[Broker]:
    broker = Broker(url, SERVICE)
    consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
    broker.add(consumer)
    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        yield broker
        await consumer.stop(5)


@asynccontextmanager
async def a_channel(environment: Environment) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, SERVICE)
        yield channel


async def publish(channel: AbstractChannel, count: int) -> list[str]:
    ids = [str(uuid.uuid4()) for _ in range(count)]
    for message_id in ids:
        body = encode(newer_envelope(message_id=message_id, id=str(uuid.uuid4())))
        await channel.default_exchange.publish(
            Message(body, message_id=message_id, delivery_mode=2, user_id="gateway"), QUEUE
        )
    return ids


async def ready(channel: AbstractChannel, queue: str) -> int:
    found = await channel.declare_queue(queue, passive=True)
    return found.declaration_result.message_count or 0


async def has(channel: AbstractChannel, queue: str, count: int) -> bool:
    return await ready(channel, queue) == count


async def are_recorded(inbox: Inbox, ids: list[str]) -> bool:
    return set(inbox.recorded) >= set(ids)


async def test_sessions_lost_while_the_database_is_away_count_against_no_command(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poison, "POISON_RETURNS", 5)  # the limit that there once was
    inbox = Inbox()
    before = value_of(CONSUMER_RESTARTS.labels(QUEUE))
    async with a_channel(fresh_environment) as channel, wire_to(fresh_environment.amqp_url) as wire:
        async with consuming(wire.url, inbox) as broker:
            inbox.is_there.clear()
            ids = await publish(channel, 100)
            await eventually("all are given back", partial(has, channel, QUEUE, 100))
            not_ready = await is_not_ready(broker)
            taken = len(inbox.begun)
            for _ in range(8):
                await eventually("it is back", partial(is_replaced, wire, wire.connections))
            # Outlasts the watchdog, which must not strike: there is no condition to wait for.
            await asyncio.sleep(2 * consumption.STALL_SECONDS)
            taken_meanwhile = len(inbox.begun) - taken
            inbox.is_there.set()
            await eventually("all are recorded", partial(are_recorded, inbox, ids))
            await eventually("it is ready again", partial(is_ready, broker))
            await eventually("none is left", partial(has, channel, QUEUE, 0))
        dead = await ready(channel, dead_queue(QUEUE))

    assert not_ready
    assert taken_meanwhile == 0
    assert dead == 0
    assert value_of(CONSUMER_RESTARTS.labels(QUEUE)) == before


async def test_how_far_it_has_caught_up_is_not_known_while_it_is_paused(
    fresh_environment: Environment,
) -> None:
    inbox = Inbox()
    broker = Broker(fresh_environment.amqp_url, SERVICE)
    consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
    broker.add(consumer)

    async def is_known() -> bool:
        return consumer.caught_up_to() is not None

    async def is_measured() -> bool:
        return bool(value_of(QUEUE_MESSAGES.labels(QUEUE)) == 3)

    async with a_channel(fresh_environment) as channel, broker.open():
        await broker.start(wait_seconds=10 * pace())
        await eventually("it has caught up", is_known)
        inbox.is_there.clear()
        await publish(channel, 3)
        await eventually("all are given back", partial(has, channel, QUEUE, 3))
        given_back = consumer.caught_up_to()
        await eventually("the queue is measured", is_measured)
        measured = consumer.caught_up_to()
        inbox.is_there.set()
        await eventually("it has caught up again", is_known)
        await consumer.stop(5)

    assert given_back is None
    assert measured is None
    assert consumer.caught_up_to() is None, "without a session"


async def test_while_the_leader_of_its_queue_does_not_answer_nothing_counts_as_known(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumption, "SILENT_SECONDS", 0.3)
    inbox = Inbox()
    async with wire_to(fresh_environment.amqp_url) as wire:
        broker = Broker(wire.url, SERVICE)
        consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
        broker.add(consumer)
        async with broker.open():
            await broker.start(wait_seconds=10 * pace())
            with capture_logs() as logs:
                wire.forget_counts()
                await eventually("it is noticed", partial(is_logged, logs, "queue_not_answering"))
            QUEUE_MESSAGES.labels(QUEUE).set(7)
            before = consumer.caught_up_to()
            await eventually("it is not ready", partial(is_not_ready, broker))
            with pytest.raises(ConnectionError) as refused:
                await broker.ping()
            messages = value_of(QUEUE_MESSAGES.labels(QUEUE))
            after = consumer.caught_up_to()
            wire.know_counts()
            await eventually("it is ready again", partial(is_ready, broker))
            await consumer.stop(5)

    assert str(refused.value) == f"the queue {QUEUE} does not answer"
    assert messages == 7
    assert after == before
    assert wire.connections == 1


async def test_while_the_leader_of_the_dead_queue_does_not_answer_its_letters_are_not_taken_for_gone(
    fresh_environment: Environment,
) -> None:
    inbox, dead = Inbox(), dead_queue(QUEUE)
    async with wire_to(fresh_environment.amqp_url) as wire:
        broker = Broker(wire.url, SERVICE)
        consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
        broker.add(consumer)
        async with broker.open():
            await broker.start(wait_seconds=10 * pace())
            DEAD_LETTERS.labels(dead).set(7)
            with capture_logs() as logs:
                wire.silence_leader(dead)
                await eventually("it is noticed", partial(is_logged, logs, "queue_not_answering"))
            letters = value_of(DEAD_LETTERS.labels(dead))
            await broker.ping()
            await consumer.stop(5)

    assert letters == 7
    assert [log["queue"] for log in logs if log["event"] == "queue_not_answering"] == [dead]
    assert wire.connections == 1


async def test_a_database_that_takes_long_to_fail_is_not_taken_for_a_broker_that_does_not_answer(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LATE_SECONDS", 0.5 * pace())
    monkeypatch.setattr(command_consumer, "CHECK_SECONDS", 1.5 * pace())
    reasons: list[str] = []

    class SwallowedPackets(Inbox):
        async def ping(self) -> None:
            await asyncio.Event().wait()

    inbox = SwallowedPackets()
    inbox.is_there.clear()
    async with (
        a_channel(fresh_environment) as channel,
        consuming(fresh_environment.amqp_url, inbox) as broker,
    ):

        async def is_paused() -> bool:
            try:
                await broker.ping()
            except ConnectionError as error:
                reasons.append(str(error))
            return f"the consumer of {QUEUE} is paused" in reasons

        await publish(channel, 1)
        await eventually("it pauses", is_paused)
        inbox.is_there.set()

    assert set(reasons) == {f"the consumer of {QUEUE} is paused"}


async def is_logged(logs: Sequence[Mapping[str, object]], event: str) -> bool:
    return any(log["event"] == event for log in logs)


async def test_a_consumer_stops_when_its_session_ends_by_a_fin_behind_deliveries(
    fresh_environment: Environment,
) -> None:
    inbox = Inbox()
    inbox.is_there.clear()
    async with a_channel(fresh_environment) as channel, wire_to(fresh_environment.amqp_url) as wire:
        broker = Broker(wire.url, SERVICE)
        consumer = CommandConsumer(SERVICE, inbox.accept, inbox.ping)
        broker.add(consumer)
        async with broker.open():
            await broker.start(wait_seconds=10 * pace())
            wire.hold_answers()
            await publish(channel, 20)
            await eventually("they are delivered", partial(has, channel, QUEUE, 0))

            async def is_canceling() -> bool:
                return BASIC_CANCEL in wire.sent

            stopping = asyncio.create_task(consumer.stop(HOLD_SECONDS))
            await eventually("it asks to be canceled", is_canceling)
            wire.end_without_confirms()
            await stopping

    assert inbox.recorded == []


async def test_a_single_slow_command_pauses_nothing(fresh_environment: Environment) -> None:
    slow = asyncio.Event()

    class SlowForOne(Inbox):
        async def accept(
            self, envelope: Envelope, reply_to: str | None, is_redelivered: bool
        ) -> None:
            if not self.begun:
                self.begun.append(envelope.message_id)
                await slow.wait()
            await super().accept(envelope, reply_to, is_redelivered)

    inbox = SlowForOne()
    async with (
        a_channel(fresh_environment) as channel,
        consuming(fresh_environment.amqp_url, inbox) as broker,
    ):
        (first,) = await publish(channel, 1)
        await eventually("it is begun", partial(is_begun, inbox))
        # Outlasts the hold, at which a pause would begin: there is no condition to wait for.
        await asyncio.sleep(5 * HOLD_SECONDS)
        others = await publish(channel, 3)
        await eventually("others are recorded", partial(are_recorded, inbox, others))
        assert await is_ready(broker)
        slow.set()
        await eventually("it is recorded", partial(are_recorded, inbox, [first]))


async def is_begun(inbox: Inbox) -> bool:
    return bool(inbox.begun)


async def kill_with_all_in_hand(environment: Environment, count: int, times: int) -> None:
    """Take `count` commands and die, so often."""
    for _ in range(times):
        connection = await aio_pika.connect(environment.amqp_url)
        channel = await connection.channel()
        queue = await channel.get_queue(QUEUE)
        for _ in range(count):
            await next_in(queue)
        await connection.close()


async def test_a_command_that_ended_every_process_that_took_it_is_dead_lettered(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_consumer, "SUSPECT_RETURNS", 2)
    monkeypatch.setattr(poison, "POISON_RETURNS", 3)
    inbox = Inbox()
    refused = value_of(MESSAGES_REFUSED.labels(QUEUE, "poison"))
    async with a_channel(fresh_environment) as channel:
        await publish(channel, 1)
        await kill_with_all_in_hand(fresh_environment, 1, times=3)
        async with consuming(fresh_environment.amqp_url, inbox):
            await eventually("it is dead", partial(has, channel, dead_queue(QUEUE), 1))
            good = await publish(channel, 1)
            await eventually("others go on", partial(are_recorded, inbox, good))
            await eventually("the metric tells", partial(tells, dead_queue(QUEUE), 1))

    assert inbox.recorded == good
    assert value_of(MESSAGES_REFUSED.labels(QUEUE, "poison")) == refused + 1


async def tells(queue: str, letters: int) -> bool:
    return bool(value_of(DEAD_LETTERS.labels(queue)) == letters)


async def test_what_came_back_often_is_taken_alone_and_in_random_order(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_consumer, "SUSPECT_RETURNS", 1)
    inbox = Inbox()
    async with a_channel(fresh_environment) as channel:
        ids = await publish(channel, 20)
        await kill_with_all_in_hand(fresh_environment, 20, times=1)
        async with consuming(fresh_environment.amqp_url, inbox):
            await eventually("all are recorded", partial(are_recorded, inbox, ids))

    assert inbox.at_once == 1
    assert inbox.recorded != ids


async def test_a_command_of_a_later_version_is_dead_lettered_loudly_and_harms_no_other(
    fresh_environment: Environment,
) -> None:
    inbox = Inbox()
    refused = value_of(MESSAGES_REFUSED.labels(QUEUE, "newer_version"))
    async with a_channel(fresh_environment) as channel:
        with capture_logs() as logs:
            async with consuming(fresh_environment.amqp_url, inbox):
                await channel.default_exchange.publish(
                    Message(encode(newer_envelope(version=VERSION + 1)), user_id="gateway"), QUEUE
                )
                good = await publish(channel, 1)
                await eventually("it is dead", partial(has, channel, dead_queue(QUEUE), 1))
                await eventually("others go on", partial(are_recorded, inbox, good))

    assert inbox.recorded == good
    assert value_of(MESSAGES_REFUSED.labels(QUEUE, "newer_version")) == refused + 1
    assert [log["cause"] for log in logs if log["event"] == "envelope_of_a_later_release"] == [
        f"version {VERSION + 1}"
    ]


async def test_a_query_of_a_later_version_is_answered_that_nothing_was_started(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.messaging.service_client.encode", as_a_later_release)
    queue = queries_queue("ledger_read")
    refused = value_of(MESSAGES_REFUSED.labels(queue, "newer_version"))
    async with ledger(fresh_environment), calling(fresh_environment) as service_client:
        with pytest.raises(Unavailable):
            async with asyncio.timeout(10 * pace()):
                await service_client.query(
                    LIST_CUSTOMER_ACCOUNTS,
                    PRINCIPAL,
                    ListCustomerAccounts(),
                    time.time() + 20 * pace(),
                )

    assert value_of(MESSAGES_REFUSED.labels(queue, "newer_version")) == refused + 1


def as_a_later_release(envelopes: list[Envelope]) -> bytes:
    return encode(
        [
            newer_envelope(id=one.id, message_id=one.message_id, version=VERSION + 1)
            for one in envelopes
        ]
    )


async def test_a_queue_of_other_arguments_is_told_in_one_sentence_and_keeps_the_service_unready(
    fresh_environment: Environment,
) -> None:
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with connection, connection.channel() as channel:
        await channel.declare_queue(
            QUEUE, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 5}
        )
    broker = Broker(fresh_environment.amqp_url, SERVICE)
    broker.add(CommandConsumer(SERVICE, Inbox().accept, Inbox().ping))

    with capture_logs() as logs:
        async with broker.open():
            await broker.start()

            told = partial(is_logged, logs, "queue_has_other_arguments")
            await eventually("it is told", told)
            assert not await is_ready(broker)

    assert not any(log["event"] == "broker_session_failed" for log in logs)
    line = next(log for log in logs if log["event"] == "queue_has_other_arguments")
    assert QUEUE in line["refused"]
    assert "exc_info" not in line
