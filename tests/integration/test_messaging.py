"""Asking and answering over a real broker, whatever happens to the way there."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.exceptions import ChannelPreconditionFailed

from libs.contracts.accounts import AccountList, ListCustomerAccounts
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import (
    InternalError,
    NotFound,
    OutcomePending,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.ledger_read_operations import LIST_CUSTOMER_ACCOUNTS
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.metrics import INTERNAL_ERRORS
from libs.messaging.broker import Broker
from libs.messaging.envelope import decode_queries
from libs.messaging.service_client import ServiceClient
from libs.messaging.session import Session
from libs.messaging.topology import QUERIES, declare_queries, queries_queue
from tests.integration.amqp_wire import wire_to
from tests.integration.gateway.desk import answering, calling, carrying_out, until
from tests.integration.readiness import is_ready
from tests.support.infrastructure import Environment
from tests.support.metrics import value_of
from tests.support.pace import pace
from tests.support.queues import declare_service

PRINCIPAL = Principal("tenant", "Tenant", Family.CUSTOMER, "sub_test", str(uuid.uuid4()))
EMPTY = AccountList(name="n", dba_name=None, accounts=[])


async def list_accounts(service_client: ServiceClient, seconds: float | None = None) -> Any:
    """`seconds`: until the deadline; None: as long as anything is waited for."""
    if seconds is None:
        seconds = 10.0 * pace()
    command = ListCustomerAccounts()
    return await service_client.query(
        LIST_CUSTOMER_ACCOUNTS, PRINCIPAL, command, time.time() + seconds
    )


async def empty(_principal: Principal, _command: Any, _deadline: float) -> Result:
    return Result(EMPTY)


@asynccontextmanager
async def ledger(environment: Environment, handler: Any = empty) -> AsyncIterator[Broker]:
    handlers = {LIST_CUSTOMER_ACCOUNTS.name: handler}
    async with answering(environment, "ledger_read", handlers) as broker:
        yield broker


async def test_queries_that_are_asked_together_travel_together_and_each_gets_its_own_answer(
    fresh_environment: Environment,
) -> None:
    async def name_of(principal: Principal, _command: Any, _deadline: float) -> Result:
        return Result(EMPTY.model_copy(update={"name": principal.tenant}))

    async def ask(service_client: ServiceClient, number: int) -> str:
        principal = Principal(f"t{number}", "T", Family.CUSTOMER, "sub", "c")
        payload = await service_client.query(
            LIST_CUSTOMER_ACCOUNTS, principal, ListCustomerAccounts(), time.time() + 10 * pace()
        )
        return str(payload["data"]["name"])

    spied = await aio_pika.connect(fresh_environment.amqp_url)
    async with (
        ledger(fresh_environment, name_of),
        calling(fresh_environment) as service_client,
        spied,
        spied.channel() as channel,
    ):
        copies = await channel.declare_queue(exclusive=True)
        await copies.bind(QUERIES, LIST_CUSTOMER_ACCOUNTS.service)
        names = await asyncio.gather(*(ask(service_client, n) for n in range(500)))
        batches = []
        while message := await copies.get(fail=False, no_ack=True):
            batches.append(len(decode_queries(message.body)))

    assert names == [f"t{n}" for n in range(500)]
    assert sum(batches) == 500
    assert len(batches) < 100
    assert max(batches) == 64


async def test_a_query_whose_deadline_has_passed_is_not_answered(
    fresh_environment: Environment,
) -> None:
    asked: list[str] = []

    async def note(principal: Principal, _command: Any, _deadline: float) -> Result:
        asked.append(principal.tenant)
        return Result(EMPTY)

    async with calling(fresh_environment) as service_client:
        async with ledger(fresh_environment):
            pass  # leaves the queue behind
        with pytest.raises(ProviderTimeout):
            await list_accounts(service_client, 0.5)
        async with ledger(fresh_environment, note):
            await list_accounts(service_client)

    assert len(asked) == 1


async def test_a_slow_answer_is_a_timeout_three_seconds_before_the_deadline(
    fresh_environment: Environment,
) -> None:
    async def slow(_principal: Principal, _command: Any, _deadline: float) -> Result:
        await asyncio.Event().wait()
        raise AssertionError

    async with ledger(fresh_environment, slow), calling(fresh_environment) as service_client:
        async with asyncio.timeout(3.5 * pace()):
            with pytest.raises(ProviderTimeout):
                await list_accounts(service_client, 4)


@pytest.mark.parametrize(
    "error", [NotFound("No such.", extra={"k": Decimal("1.10")}), Unavailable()]
)
async def test_an_error_of_the_service_is_raised_as_what_it_is(
    fresh_environment: Environment, error: Any
) -> None:
    async def fail(_principal: Principal, _command: Any, _deadline: float) -> Result:
        raise error

    async with ledger(fresh_environment, fail), calling(fresh_environment) as service_client:
        with pytest.raises(type(error)) as raised:
            await list_accounts(service_client)

    assert (raised.value.detail, raised.value.extra) == (error.detail, error.extra)


async def test_a_fault_of_the_service_is_counted_and_says_nothing_of_its_cause(
    fresh_environment: Environment,
) -> None:
    async def fail(_principal: Principal, _command: Any, _deadline: float) -> Result:
        raise KeyError("canary")

    async with ledger(fresh_environment, fail), calling(fresh_environment) as service_client:
        counted = value_of(INTERNAL_ERRORS.labels(LIST_CUSTOMER_ACCOUNTS.name))
        with pytest.raises(InternalError) as raised:
            await list_accounts(service_client)

    assert value_of(INTERNAL_ERRORS.labels(LIST_CUSTOMER_ACCOUNTS.name)) == counted + 1
    assert "canary" not in f"{raised.value.detail}{raised.value.extra}"


async def test_nobody_there_is_unavailable_at_once(fresh_environment: Environment) -> None:
    async with calling(fresh_environment) as service_client:
        command = service_client.envelope(
            UPDATE_PERSON,
            PRINCIPAL,
            UpdatePerson.model_validate({"person_id": "p"}),
            command_id=str(uuid.uuid4()),
            request_id="r",
            deadline=time.time() + 10 * pace(),
        )
        async with asyncio.timeout(5 * pace()):
            with pytest.raises(Unavailable):
                await list_accounts(service_client)
            with pytest.raises(Unavailable):
                await service_client.send_command(command)


async def test_an_unreadable_query_message_harms_no_other(fresh_environment: Environment) -> None:
    async with ledger(fresh_environment), calling(fresh_environment) as service_client:
        connection = await aio_pika.connect(fresh_environment.amqp_url)
        async with connection, connection.channel() as channel:
            queries = await channel.get_exchange(QUERIES)
            for body in [b"\xff", b"{}", b"[{}]", b"[" * 10_000] * 10:
                message = Message(body, user_id="gateway")
                await queries.publish(message, LIST_CUSTOMER_ACCOUNTS.service)
            assert await list_accounts(service_client)


async def test_a_consumer_comes_back_after_its_queue_was_deleted(
    fresh_environment: Environment,
) -> None:
    async with ledger(fresh_environment), calling(fresh_environment) as service_client:
        await list_accounts(service_client)
        connection = await aio_pika.connect(fresh_environment.amqp_url)
        async with connection, connection.channel() as channel:
            await channel.queue_delete(queries_queue("ledger_read"))

        assert await until(lambda: answered(service_client))


async def answered(service_client: ServiceClient) -> bool:
    try:
        return bool(await list_accounts(service_client, 1))
    except (Unavailable, ProviderTimeout):
        return False


async def test_both_ends_come_back_after_their_connections_were_cut(
    fresh_environment: Environment,
) -> None:
    async with wire_to(fresh_environment.amqp_url) as wire:
        through = fresh_environment.with_urls(amqp_url=wire.url)
        async with ledger(through), calling(through) as service_client:
            for _ in range(3):
                await until(lambda: answered(service_client))
                wire.cut()

            assert await until(lambda: answered(service_client))


async def test_a_broker_that_is_cut_off_at_any_byte_of_the_beginning_is_reached_in_the_end(
    fresh_environment: Environment,
) -> None:
    async with wire_to(fresh_environment.amqp_url) as wire:
        wire.answers_allowed = 0
        service_client = ServiceClient(Sealing())
        broker = Broker(wire.url, "tests")
        broker.add(service_client)
        async with broker.open():
            await broker.start()
            for allowed in range(0, 700, 140):
                wire.answers_allowed, seen = allowed, wire.connections
                await until(lambda seen=seen: more_than(wire, seen))  # type: ignore[misc]
            wire.answers_allowed = None

            assert await until(lambda: is_ready(broker))


async def more_than(wire: Any, connections: int) -> bool:
    return bool(wire.connections > connections)


class Sealing:
    """Seals nothing."""

    def seal(self, plaintext: str, context: str) -> str:
        return plaintext

    def open(self, token: str, context: str) -> str:
        return token


class Faulty:
    """A part that fails in a way that no broker does, once."""

    def __init__(self) -> None:
        self.attached = 0

    async def attach(self, session: Session) -> None:
        self.attached += 1
        if self.attached == 1:
            raise ZeroDivisionError

    def detach(self) -> None:
        pass


async def test_a_fault_while_attaching_does_not_end_the_connecting_for_ever(
    fresh_environment: Environment,
) -> None:
    part = Faulty()
    broker = Broker(fresh_environment.amqp_url, "tests")
    broker.add(part)
    async with broker.open():
        await broker.start()

        assert await until(lambda: is_ready(broker), 5)

    assert part.attached == 2


async def test_a_command_that_its_service_cannot_open_is_pending_to_its_caller(
    fresh_environment: Environment,
) -> None:
    """It is sealed with another ring, and becomes a dead letter (`test_unknown_keys`)."""
    other = Environment(
        fresh_environment.database,
        fresh_environment.database_urls,
        fresh_environment.amqp_url,
        replace(
            fresh_environment.secrets,
            shared_keys=type(fresh_environment.secrets).generate().shared_keys,
        ),
    )

    async def update(*_: Any) -> Result:
        raise AssertionError("it must not open")

    async with (
        carrying_out(other, {UPDATE_PERSON.name: update}),
        calling(fresh_environment) as service_client,
    ):
        envelope = service_client.envelope(
            UPDATE_PERSON,
            PRINCIPAL,
            UpdatePerson.model_validate({"person_id": "p", "tin": "123456780"}),
            command_id=str(uuid.uuid4()),
            request_id="r",
            deadline=time.time() + pace(),
        )
        with pytest.raises(OutcomePending):
            await service_client.send_command(envelope)

    assert b"123456780" not in bytes(envelope.body)


async def test_a_lost_caller_is_told_at_its_deadline_that_the_command_is_pending(
    fresh_environment: Environment,
) -> None:
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
    async with calling(fresh_environment) as service_client:
        envelope = service_client.envelope(
            UPDATE_PERSON,
            PRINCIPAL,
            UpdatePerson.model_validate({"person_id": "p"}),
            command_id=str(uuid.uuid4()),
            request_id="r",
            deadline=time.time() + 0.5,
        )
        with pytest.raises(OutcomePending):
            await service_client.send_command(envelope)


async def test_queries_wait_in_queues_of_the_type_that_is_set(
    fresh_environment: Environment,
) -> None:
    connection = await aio_pika.connect(fresh_environment.amqp_url)
    async with connection:
        async with connection.channel() as channel:
            await declare_queries(channel, "ledger_read", "quorum")
            await declare_queries(channel, "ledger_read", "quorum")

        async with connection.channel() as channel:
            with pytest.raises(ChannelPreconditionFailed):
                await declare_queries(channel, "ledger_read")
