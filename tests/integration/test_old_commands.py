"""A command that comes after the record of what it did may be purged is not carried out by itself."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from msgspec import structs

from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.handling import acceptance
from libs.handling.acceptance import DATABASE_RETRY_SECONDS
from libs.messaging.envelope import Envelope, encode
from libs.messaging.refusing import REASON
from libs.messaging.topology import commands_queue, dead_queue
from libs.persistence import inbox_acceptance
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.test_command_driving import Service, envelope_of
from tests.support.infrastructure import Environment
from tests.support.queues import declare_service, next_in
from tests.support.waiting import eventually

QUEUE = commands_queue("onboarding")
KEPT = frozenset({UPDATE_PERSON.name})
FORGOTTEN = "may_be_forgotten"
CARRIED_OUT = "carried out"


@asynccontextmanager
async def a_channel(environment: Environment) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
        yield channel


async def a_command(environment: Environment, hours: float) -> Envelope:
    async with calling(environment) as service_client:
        return structs.replace(envelope_of(service_client), deadline=time.time() - hours * 3600)


async def publish(channel: AbstractChannel, envelope: Envelope) -> None:
    await channel.default_exchange.publish(
        Message(
            encode(envelope), message_id=envelope.message_id, delivery_mode=2, user_id="gateway"
        ),
        QUEUE,
    )


async def take_and_die(environment: Environment) -> None:
    connection = await aio_pika.connect(environment.amqp_url)
    queue = await (await connection.channel()).get_queue(QUEUE)
    await next_in(queue)
    await connection.close()


async def fate(service: Service, channel: AbstractChannel) -> str:
    """The reason in its dead letter, or CARRIED_OUT."""
    dead = await channel.get_queue(dead_queue(QUEUE))

    async def known() -> str:
        letter = await dead.get(fail=False, no_ack=True)
        if letter is not None:
            return str(letter.headers[REASON])
        return CARRIED_OUT if [step for step, _ in service.log] == ["begin", "end"] else ""

    return str(await until(known))


@pytest.mark.parametrize(
    ("came_back", "hours", "expected"),
    [
        (True, 22, CARRIED_OUT),
        (True, 25, FORGOTTEN),
        # Held back, it would come after commands that were sent later.
        (False, 25, CARRIED_OUT),
    ],
)
async def test_a_command_that_may_be_forgotten_by_now_is_left_to_an_operator(
    fresh_environment: Environment, came_back: bool, hours: float, expected: str
) -> None:
    service = Service()
    async with a_channel(fresh_environment) as channel:
        await publish(channel, await a_command(fresh_environment, hours))
        if came_back:
            await take_and_die(fresh_environment)

        async with carrying_out(fresh_environment, {UPDATE_PERSON.name: service}):
            found = await fate(service, channel)

    assert found == expected
    assert bool(service.log) == (expected == CARRIED_OUT)


async def test_an_old_redelivery_of_a_command_that_is_known_has_no_effect(
    fresh_environment: Environment,
) -> None:
    service = Service()
    async with (
        a_channel(fresh_environment) as channel,
        calling(fresh_environment) as service_client,
        carrying_out(fresh_environment, {UPDATE_PERSON.name: service}),
    ):
        envelope = envelope_of(service_client)
        await service_client.send_command(envelope)

        await publish(channel, structs.replace(envelope, deadline=time.time() - 25 * 3600))
        await service_client.send_command(envelope_of(service_client))  # by now it was taken
        await eventually("all are settled", partial(is_empty, channel, QUEUE))
        dead = await is_empty(channel, dead_queue(QUEUE))

    assert [name for step, name in service.log if step == "end"].count(f"p1/{envelope.id}") == 1
    assert dead


async def is_empty(channel: AbstractChannel, queue: str) -> bool:
    found = await channel.declare_queue(queue, passive=True)
    return found.declaration_result.message_count == 0


@pytest.mark.parametrize(
    ("surely_known_seconds", "expected"),
    [(acceptance.SURELY_KNOWN_SECONDS, CARRIED_OUT), (DATABASE_RETRY_SECONDS / 2, FORGOTTEN)],
)
async def test_an_old_command_whose_commit_was_lost_is_left_to_an_operator_once_it_may_be_purged(
    fresh_environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    surely_known_seconds: float,
    expected: str,
) -> None:
    service = Service()
    lost: list[object] = []
    together = inbox_acceptance.accept_together

    async def lost_once(*arguments: Any, **named: Any) -> Any:
        if not lost:
            lost.append(arguments)
            raise ConnectionResetError
        return await together(*arguments, **named)

    monkeypatch.setattr(inbox_acceptance, "accept_together", lost_once)
    monkeypatch.setattr(acceptance, "SURELY_KNOWN_SECONDS", surely_known_seconds)
    async with a_channel(fresh_environment) as channel:
        await publish(channel, await a_command(fresh_environment, 25))

        async with carrying_out(
            fresh_environment, {UPDATE_PERSON.name: service}, keep_for_ever=KEPT
        ):
            found = await fate(service, channel)

    assert found == expected
    assert lost
