"""What consumers do with anything that reached their queues, as if the broker's permissions had failed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractConnection, HeadersType
from structlog.testing import capture_logs

from libs.contracts.errors import BanksideError
from libs.contracts.events import EVENT_TYPES, Event
from libs.contracts.exact_json import encode
from libs.contracts.ledger_read_operations import LIST_CUSTOMER_ACCOUNTS
from libs.contracts.onboarding_operations import FIND_CUSTOMER, UPDATE_PERSON
from libs.contracts.principal import SERVICE
from libs.contracts.table import BY_NAME, SERVICES, operations_of
from libs.messaging import refusing
from libs.messaging.broker import Broker
from libs.messaging.command_consumer import CommandConsumer
from libs.messaging.dead_letters import DeadLetter, open_dead_letters
from libs.messaging.envelope import VERSION, Envelope, EnvelopeHead, Reply, decode_queries, raw
from libs.messaging.event_consumer import EventConsumer
from libs.messaging.metrics import MESSAGES_REFUSED
from libs.messaging.publishing import Properties, underlying
from libs.messaging.query_consumer import QueryConsumer
from libs.messaging.refusing import BECAUSE, REASON, SENDER
from libs.messaging.service_client import ServiceClient
from libs.messaging.topology import (
    EVENT_CONSUMERS,
    EVENTS,
    QUERIES,
    REPLIES,
    commands_queue,
    dead_queue,
    events_queue,
    queries_queue,
)
from libs.runtime.process import Process
from tests.security.connections import connected, is_refused
from tests.security.messages import (
    COMMAND_NAMES,
    EVERYBODY,
    GATEWAY,
    INTERNAL_COMMANDS,
    QUEUES,
    Address,
    may_send,
    replies_of,
)
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of
from tests.support.metrics import value_of
from tests.support.pace import pace
from tests.support.waiting import eventually
from tests.unit.messaging.test_versions import newer_envelope

WITH_COMMANDS = tuple(queue.partition(".")[0] for queue in QUEUES if queue.endswith(".commands"))


@pytest.fixture(autouse=True)
def patient_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is not confirmed in time may be in the dead queue beside its message."""
    monkeypatch.setattr(refusing, "CONFIRM_SECONDS", refusing.CONFIRM_SECONDS * pace())


def an_envelope(operation: str, request_id: str = "request") -> Envelope:
    return Envelope(
        id=str(uuid.uuid4()),
        message_id=str(uuid.uuid4()),
        request_id=request_id,
        operation=operation,
        principal=SERVICE,
        deadline=time.time() + 60,
        body=raw({}),
    )


async def in_queue(channel: AbstractChannel, queue: str, count: int) -> bool:
    found = await channel.declare_queue(queue, passive=True)
    return found.declaration_result.message_count == count


async def dead_of(site: Environment, queue: str) -> list[DeadLetter]:
    """Looked at by the service that owns the queue."""
    async with open_dead_letters(site.amqp_urls[queue.partition(".")[0]]) as letters:
        return await letters.look(dead_queue(queue))


async def test_a_letter_says_of_itself_neither_who_sent_it_nor_why_it_died(
    site: Environment, administrator: AbstractConnection
) -> None:
    """What its sender puts in the place of the consumer's headers counts for nothing."""
    queue = commands_queue("onboarding")
    headers: HeadersType = {SENDER: GATEWAY, REASON: "poison", BECAUSE: "Made up."}
    async with administrator.channel() as channel:
        await channel.default_exchange.publish(
            Message(b"{}", user_id="payments", message_id="forged", headers=headers),
            dead_queue(queue),
        )
        [letter] = [one for one in await dead_of(site, queue) if one.id.startswith("forged-")]

    assert (letter.sender, letter.reason, letter.because) == ("payments", None, None)


async def test_a_command_is_taken_from_its_senders_alone_and_dead_lettered_from_others(
    site: Environment, administrator: AbstractConnection
) -> None:
    """Put into the queue by one who may, as if the broker's permissions had failed."""
    taken: list[tuple[str, str]] = []

    async def accept(envelope: Envelope, _: str | None, __: bool) -> None:
        taken.append((envelope.request_id, envelope.operation))

    async def ping() -> None:
        pass

    sent = [
        (sender, operation, service)
        for service in WITH_COMMANDS
        for operation in (
            *(row.name for row in operations_of(service)),
            *INTERNAL_COMMANDS,
            next(name for name in COMMAND_NAMES if not name.startswith(service)),
        )
        for sender in (*EVERYBODY, None)
    ]
    allowed = {
        (sender, name)
        for sender, name, service in sent
        if name in COMMAND_NAMES and sender in BY_NAME[name].senders and name.startswith(service)
    }
    per_queue = Counter(service for *_, service in sent)
    good = Counter(name.partition(".")[0] for _, name in allowed)
    async with AsyncExitStack() as opened:
        channel = await administrator.channel()
        for number, (sender, operation, service) in enumerate(sent):
            body = encode(an_envelope(operation, str(sender)))
            message = Message(body, user_id=sender, message_id=f"copied{number}")
            await channel.default_exchange.publish(message, commands_queue(service))
        misdirected = Message(
            encode(an_envelope(UPDATE_PERSON.name)),
            user_id=GATEWAY,
            reply_to=replies_of("payments"),
        )
        await channel.default_exchange.publish(misdirected, commands_queue("onboarding"))
        per_queue["onboarding"] += 1
        for service in WITH_COMMANDS:
            broker = Broker(site.amqp_urls[service], service)
            broker.add(CommandConsumer(service, accept, ping))
            await opened.enter_async_context(broker.open())
            await broker.start(wait_seconds=10)
        for service in WITH_COMMANDS:
            queue = dead_queue(commands_queue(service))
            letters = per_queue[service] - good[service]
            await eventually(f"{letters} in {queue}", partial(in_queue, channel, queue, letters))
        dead = await dead_of(site, commands_queue("onboarding"))

    assert sorted(taken) == sorted((str(sender), name) for sender, name in allowed)
    assert {(one.reason, one.because) for one in dead} == {
        ("sender", "Its sender may not send it, or directed its reply to another service.")
    }
    assert {one.sender for one in dead} == {*EVERYBODY, None}


@pytest.mark.parametrize(
    ("sender", "is_newer", "event", "reason"),
    [
        (GATEWAY, False, "not_an_envelope", "unreadable"),
        (GATEWAY, True, "envelope_of_a_later_release", "newer_version"),
        ("webhook_dispatcher", False, "sender_refused", "sender"),
        ("webhook_dispatcher", True, "sender_refused", "sender"),
        (None, True, "sender_refused", "sender"),
    ],
)
async def test_what_cannot_be_read_is_refused_for_its_sender_first_and_logged_with_it(
    site: Environment,
    administrator: AbstractConnection,
    sender: str | None,
    is_newer: bool,
    event: str,
    reason: str,
) -> None:
    async def never(*_: object) -> None:
        raise AssertionError("nothing here can be read")

    async def told(*_: object) -> None:
        pass

    newer = encode(newer_envelope(version=VERSION + 1))
    bodies = {
        commands_queue("onboarding"): newer if is_newer else b"[",
        queries_queue("onboarding"): b"[" + newer + b"]" if is_newer else b"[",
    }
    before = {queue: refusals_of(queue) for queue in bodies}
    broker = Broker(site.amqp_urls["onboarding"], "onboarding")
    broker.add(CommandConsumer("onboarding", never, never))
    broker.add(QueryConsumer("onboarding", never, told))
    with capture_logs() as logs:
        async with broker.open(), administrator.channel() as channel:
            await broker.start(wait_seconds=10)
            for queue, body in bodies.items():
                message = Message(body, user_id=sender, message_id=f"to {queue}")
                await channel.default_exchange.publish(message, queue)

            async def both_are_logged() -> bool:
                return [line["event"] for line in logs].count(event) == len(bodies)

            await eventually("both are logged", both_are_logged)

    lines = [line for line in logs if line["event"] == event]
    assert {(line["sender"], line["message_id"]) for line in lines} == {
        (sender, f"to {queue}") for queue in bodies
    }
    for queue in bodies:
        assert refusals_of(queue) - before[queue] == Counter({reason: 1})


async def test_only_the_envelopes_of_a_batch_that_its_sender_may_send_are_answered(
    site: Environment, administrator: AbstractConnection
) -> None:
    """Every service sends each service that it may ask one batch with all that can be asked of it."""
    answered: list[tuple[str, str]] = []

    async def answer(envelope: Envelope, _: str | None) -> None:
        answered.append((envelope.request_id, envelope.operation))

    async def refuse(_: EnvelopeHead, __: str | None, ___: BanksideError) -> None:
        raise AssertionError("nothing here is of a later release")

    expected = [
        (sender, row.name)
        for service in SERVICES
        for row in operations_of(service)
        if row.is_query
        for sender in row.senders
    ]
    before = {service: refused_of(queries_queue(service)) for service in SERVICES}
    wrong: Counter[str] = Counter()
    async with AsyncExitStack() as opened:
        for service in SERVICES:
            broker = Broker(site.amqp_urls[service], service)
            broker.add(QueryConsumer(service, answer, refuse))
            await opened.enter_async_context(broker.open())
            await broker.start(wait_seconds=10)
        channel = await administrator.channel()
        for service in SERVICES:
            names = [row.name for row in operations_of(service) if row.is_query]
            for sender in EVERYBODY:
                batch = [an_envelope(name, sender) for name in names]
                message = Message(encode(batch), user_id=sender, reply_to=replies_of(sender))
                if may_send(sender, Address(QUERIES, service)):
                    own = await opened.enter_async_context(connected(site.amqp_urls[sender]))
                    assert not await is_refused(own, Address(QUERIES, service), message)
                else:
                    await channel.default_exchange.publish(message, queries_queue(service))
                wrong[service] += sum(sender not in BY_NAME[name].senders for name in names)
        for service in SERVICES:

            async def all_counted(service: str = service) -> bool:
                counted = refused_of(queries_queue(service)) - before[service]
                return bool(counted == wrong[service])

            await eventually(f"{wrong[service]} of {service} are counted", all_counted)

        async def all_answered() -> bool:
            return len(answered) >= len(expected)

        await eventually("the others are answered", all_answered)

    assert sorted(answered) == sorted(expected)


def refusals_of(queue: str) -> Counter[str]:
    """How many were refused, by reason."""
    reasons = ("sender", "unreadable", "newer_version")
    return Counter({one: int(value_of(MESSAGES_REFUSED.labels(queue, one))) for one in reasons})


def refused_of(queue: str) -> float:
    return refusals_of(queue)["sender"]


async def test_a_query_by_a_second_routing_key_or_with_replies_to_another_is_dropped(
    site: Environment, administrator: AbstractConnection
) -> None:
    """The broker checks neither the routing keys in the header CC nor whose queue `reply_to` is."""
    asked: list[str] = []

    async def answer(envelope: Envelope, _: str | None) -> None:
        asked.append(envelope.request_id)

    async def refuse(_: EnvelopeHead, __: str | None, ___: BanksideError) -> None:
        asked.append("refused")

    before = refused_of(queries_queue("payments")), refused_of(queries_queue("onboarding"))
    async with AsyncExitStack() as opened:
        for service in ("payments", "onboarding"):
            broker = Broker(site.amqp_urls[service], service)
            broker.add(QueryConsumer(service, answer, refuse))
            await opened.enter_async_context(broker.open())
            await broker.start(wait_seconds=10)
        thief = await opened.enter_async_context(connected(site.amqp_urls["ledger_read"]))
        copied = Message(
            encode([an_envelope("payments.page_held_wires")]),
            user_id="ledger_read",
            headers={"CC": ["payments"]},
            reply_to=replies_of("ledger_read"),
        )
        # To another service, and to names by which the broker would end the session of the one who replies.
        redirected = [
            Message(
                encode([an_envelope(FIND_CUSTOMER.name)]), user_id="ledger_read", reply_to=reply_to
            )
            for reply_to in (
                replies_of(GATEWAY),
                "ledger_read.replies.",
                "ledger_read.replies.\n",
                "ledger_read.replies.a.b",
                "ledger_read.queries",
            )
        ]
        for message in (copied, *redirected):
            assert not await is_refused(thief, Address(QUERIES, "onboarding"), message)

        async def all_counted() -> bool:
            payments, onboarding = map(refused_of, map(queries_queue, ("payments", "onboarding")))
            return bool(payments == before[0] + 1 and onboarding == before[1] + 6)

        await eventually("all are counted", all_counted)

    assert asked == []


async def test_an_event_is_taken_from_its_emitter_alone_and_dead_lettered_from_others(
    site: Environment, administrator: AbstractConnection
) -> None:
    [service] = EVENT_CONSUMERS
    taken: list[tuple[str, str]] = []

    async def record(events: Sequence[Event]) -> tuple[int, ...]:
        taken.extend((event.tenant, event.type) for event in events)
        return ()

    sent = [(sender, name) for sender in (*EVERYBODY, None) for name in EVENT_TYPES]
    allowed = [(e.emitter, e.name) for e in EVENT_TYPES.values() if e.emitter != service]
    consumer, process = EventConsumer(service, record), Process(service)
    broker = Broker(site.amqp_urls[service], service)
    broker.add(consumer)
    async with (
        process.background("events", consumer.run()),
        broker.open(),
        administrator.channel() as channel,
    ):
        await broker.start(wait_seconds=10)
        for sender, name in sent:
            headers: HeadersType = {
                "tenant": str(sender),
                "customer_id": "",
                "resource_id": "r",
                "sequence": 1,
            }
            message = Message(b"{}", type=name, user_id=sender, headers=headers, message_id="evt_1")
            await channel.default_exchange.publish(message, events_queue(service))
        queue, letters = dead_queue(events_queue(service)), len(sent) - len(allowed)
        await eventually(f"{letters} in {queue}", partial(in_queue, channel, queue, letters))
        dead = await dead_of(site, events_queue(service))

    assert sorted(taken) == sorted(allowed)
    assert {one.because for one in dead} == {
        "It is refused: its sender does not emit events of this kind."
    }
    assert {(one.sender, one.event_type) for one in dead} == {*sent} - {*allowed}
    assert all((one.properties.headers or {})["tenant"] == str(one.sender) for one in dead)


async def test_an_answer_is_taken_from_the_service_that_was_asked_alone(
    site: Environment, administrator: AbstractConnection
) -> None:
    """Payments may send to the gateway's reply queues, but does not answer for ledger_read."""
    before = value_of(MESSAGES_REFUSED.labels(REPLIES, "sender"))
    service_client = ServiceClient(sealer_of(site.secrets, GATEWAY))
    broker = Broker(site.amqp_urls[GATEWAY], GATEWAY)
    broker.add(service_client)
    async with (
        broker.open(),
        connected(site.amqp_urls["payments"]) as thief,
        connected(site.amqp_urls["ledger_read"]) as asked,
        asked.channel() as channel,
    ):
        await broker.start(wait_seconds=10)
        envelope = an_envelope(LIST_CUSTOMER_ACCOUNTS.name)
        asking = asyncio.create_task(service_client.send_query(envelope))
        queue = await channel.get_queue(queries_queue("ledger_read"))
        query = await eventually("the query", partial(queue.get, no_ack=True, fail=False))
        (received,) = decode_queries(query.body)
        to = Address(REPLIES, query.reply_to or "")

        def reply(name: str) -> bytes:
            return encode([Reply(received.id, received.message_id, raw({"data": name}))])

        assert not await is_refused(thief, to, Message(reply("forged"), user_id="payments"))

        async def is_counted() -> bool:
            return bool(value_of(MESSAGES_REFUSED.labels(REPLIES, "sender")) == before + 1)

        await eventually("the forged one is counted", is_counted)
        assert not asking.done()
        assert not await is_refused(asked, to, Message(reply("true"), user_id="ledger_read"))
        answer = await asking

    assert bytes(answer.result) == b'{"data":"true"}'


async def test_an_operation_of_a_later_release_is_answered_unavailable_to_askers_alone(
    site: Environment, administrator: AbstractConnection
) -> None:
    refused: list[str] = []

    async def answer(_: Envelope, __: str | None) -> None:
        raise AssertionError("this release does not know it")

    async def refuse(head: EnvelopeHead, _: str | None, __: BanksideError) -> None:
        refused.append(head.id)

    before = refused_of(queries_queue("onboarding"))
    newer = {sender: an_envelope("onboarding.find_more", sender) for sender in EVERYBODY}
    broker = Broker(site.amqp_urls["onboarding"], "onboarding")
    broker.add(QueryConsumer("onboarding", answer, refuse))
    async with broker.open(), administrator.channel() as channel:
        await broker.start(wait_seconds=10)
        for sender, envelope in newer.items():
            message = Message(encode([envelope]), user_id=sender, reply_to=replies_of(sender))
            await channel.default_exchange.publish(message, queries_queue("onboarding"))

        async def all_seen() -> bool:
            counted = refused_of(queries_queue("onboarding")) - before
            return bool(len(refused) + counted == len(EVERYBODY))

        await eventually("all are seen", all_seen)

    askers = [one for one in EVERYBODY if may_send(one, Address(QUERIES, "onboarding"))]
    assert sorted(refused) == sorted(newer[one].id for one in askers)


async def test_a_message_that_comes_by_a_dead_letter_exchange_still_names_its_sender(
    site: Environment, administrator: AbstractConnection
) -> None:
    """The broker does not check the routing key of a letter, so that a queue of one's own leads to other keys."""
    [dispatcher] = EVENT_CONSUMERS
    taken: list[Event] = []

    async def record(events: Sequence[Event]) -> tuple[int, ...]:
        taken.extend(events)
        return ()

    queue = dead_queue(events_queue(dispatcher))
    consumer, process = EventConsumer(dispatcher, record), Process(dispatcher)
    broker = Broker(site.amqp_urls[dispatcher], dispatcher)
    broker.add(consumer)
    headers: HeadersType = {"tenant": "t", "customer_id": "", "resource_id": "r", "sequence": 1}
    async with (
        process.background("events", consumer.run()),
        broker.open(),
        administrator.channel() as looking,
        connected(site.amqp_urls["ledger_read"]) as thief,
        thief.channel() as channel,
    ):
        await broker.start(wait_seconds=10)
        way = await channel.declare_queue(
            replies_of("ledger_read"),
            exclusive=True,
            arguments={
                "x-message-ttl": 0,
                "x-dead-letter-exchange": EVENTS,
                "x-dead-letter-routing-key": "wire.completed",
            },
        )
        await way.bind(QUERIES, "ledger_read")
        message = Message(
            b"{}",
            type="wire.completed",
            message_id="evt_1",
            user_id="ledger_read",
            headers={**headers, "CC": ["ledger_read"]},
        )
        assert not await is_refused(thief, Address(QUERIES, "onboarding"), message)
        await eventually("it is dead", partial(in_queue, looking, queue, 1))

    assert taken == []


class NotUtf8(str):
    """A text that a client of its own sends as bytes which are no UTF-8."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        return super().encode() + b"\xff"


class NoTime(datetime):
    """A time that a client of its own sends as the greatest number there is."""

    def timestamp(self) -> float:
        return 2**64 - 1


async def test_a_message_that_cannot_be_decoded_ends_no_connection_and_harms_no_other(
    site: Environment, administrator: AbstractConnection
) -> None:
    """By what one stolen login may send: the broker hands on properties and routing keys as they are."""
    [dispatcher] = EVENT_CONSUMERS
    taken: list[str] = []

    async def record(events: Sequence[Event]) -> list[int]:
        taken.extend(event.event_id for event in events)
        return [n for n, event in enumerate(events) if not event.event_id.isascii()]

    def an_event(message_id: str, **properties: Any) -> Properties:
        headers = properties.pop("headers", {})
        return Properties(
            message_id=message_id,
            message_type="wire.submitted",
            user_id="payments",
            headers={
                "tenant": "t",
                "customer_id": "",
                "resource_id": "r",
                "sequence": 1,
                **headers,
            },
            **properties,
        )

    own, queue = replies_of("payments"), dead_queue(events_queue(dispatcher))
    no_time = NoTime(2026, 1, 1, tzinfo=UTC)
    sent = (
        (EVENTS, "wire.submitted", an_event("evt_1", timestamp=no_time)),
        (EVENTS, "wire.submitted", an_event("evt_2", headers={"at": no_time})),
        (EVENTS, "wire.submitted", an_event(NotUtf8("evt_3"))),
        (EVENTS, "wire.submitted", an_event("evt_4", headers={NotUtf8("name"): 1})),
        (own, NotUtf8("wire.submitted"), an_event("evt_5")),
        (EVENTS, "wire.submitted", an_event("evt_6")),
    )
    consumer, process = EventConsumer(dispatcher, record), Process(dispatcher)
    broker = Broker(site.amqp_urls[dispatcher], dispatcher)
    broker.add(consumer)
    with capture_logs() as logs:
        async with (
            process.background("events", consumer.run()),
            broker.open(),
            administrator.channel() as looking,
            connected(site.amqp_urls["payments"]) as thief,
            thief.channel() as channel,
        ):
            await broker.start(wait_seconds=10)
            way = await channel.declare_exchange(own, "fanout")
            await (await channel.get_exchange(EVENTS, ensure=False)).bind(way)
            published = await underlying(channel)
            for exchange, key, properties in sent:
                await published.basic_publish(
                    b"{}", exchange=exchange, routing_key=key, properties=properties
                )
            await eventually("two are dead", partial(in_queue, looking, queue, 2))
            await eventually("the last is taken", partial(is_in, taken, "evt_6"))
            await way.delete()
        dead = await dead_of(site, events_queue(dispatcher))

    assert taken == ["evt_1", "evt_2", "evt_3\N{REPLACEMENT CHARACTER}", "evt_5", "evt_6"]
    assert {(one.reason, one.sender) for one in dead} == {
        ("not_recordable", "payments"),
        ("sender", None),
    }
    assert [entry["event"] for entry in logs].count("broker_session") == 1


async def is_in(taken: list[str], event_id: str) -> bool:
    return event_id in taken
