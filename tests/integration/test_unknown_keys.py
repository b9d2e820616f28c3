"""A command that is sealed by a key which its service lacks is not recorded, and not lost."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import aio_pika
import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel

from libs.contracts.customers import UpdatePerson
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.handling.acceptance import new_command
from libs.handling.replaying import accept_command_anew
from libs.messaging.dead_letters import DeadLetter, NotReplayable, open_dead_letters
from libs.messaging.envelope import Envelope, encode
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.service_client import ServiceClient
from libs.messaging.topology import commands_queue, dead_queue
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from tests.integration.gateway.desk import calling, carrying_out, until
from tests.integration.tables import rows
from tests.integration.test_command_driving import Service
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.queues import declare_service
from tests.unit.persistence.keys import a_key

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")
QUEUE = commands_queue("onboarding")
PERSON = str(uuid4())
LATER = f"later:{a_key()}"


def with_ring(service: str, peer: str, keys: str) -> MessageSealer:
    return MessageSealer(service, {peer: Keyring(keys, "THE_RING")})


def a_change(command_id: UUID, sealer: MessageSealer) -> Envelope:
    return ServiceClient(sealer).envelope(
        UPDATE_PERSON,
        PRINCIPAL,
        UpdatePerson.model_validate({"person_id": PERSON, "tin": "536904399"}),
        command_id=str(command_id),
        request_id="request",
        deadline=time.time() + 20 * pace(),
        body_hashes=["of the body"],
    )


@asynccontextmanager
async def a_channel(environment: Environment) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, connection.channel() as channel:
        await declare_service(channel, "onboarding")
        yield channel


async def the_letter(environment: Environment) -> DeadLetter:
    async def found() -> DeadLetter | None:
        async with open_dead_letters(environment.amqp_urls["onboarding"], None) as letters:
            return next(iter(await letters.look(dead_queue(QUEUE), body_bytes=100_000)), None)

    letter = await until(found)
    assert isinstance(letter, DeadLetter)
    return letter


async def nothing(_: AsyncConnection) -> None:
    """Appended to the audit."""


async def test_it_is_a_dead_letter_until_its_caller_repeats_it_which_is_carried_out_once(
    fresh_environment: Environment, database: Database
) -> None:
    service, command_id = Service(), uuid4()
    secrets = fresh_environment.secrets
    refused = a_change(command_id, with_ring("gateway", "onboarding", LATER))
    repeated = a_change(command_id, sealer_of(secrets, "gateway"))
    both = f"{secrets.shared_keys['gateway-onboarding']},{LATER}"
    async with (
        a_channel(fresh_environment) as channel,
        calling(fresh_environment) as service_client,
        carrying_out(fresh_environment, {UPDATE_PERSON.name: service}),
    ):
        message = Message(encode(refused), message_id=refused.message_id, user_id="gateway")
        await channel.default_exchange.publish(message, QUEUE)
        letter = await the_letter(fresh_environment)
        recorded = await rows(database, "SELECT command_id FROM inbox")
        with pytest.raises(NotReplayable, match="its key later is not on"):
            await accept_command_anew(
                database, letter, nothing, "onboarding", sealer_of(secrets, "onboarding")
            )

        reply = await service_client.send_command(repeated)
        await accept_command_anew(
            database, letter, nothing, "onboarding", with_ring("onboarding", "gateway", both)
        )
        again = await service_client.send_command(
            a_change(command_id, with_ring("gateway", "onboarding", LATER))
        )

    assert letter.reason == "missing_key"
    assert letter.because is not None
    assert "its key later is not on" in letter.because
    assert recorded == []
    assert reply.error is None
    assert (again.error, again.replayed) == (None, True), (
        "what is known is answered from the record"
    )
    assert service.log == [("begin", f"{PERSON}/{command_id}"), ("end", f"{PERSON}/{command_id}")]
    assert len(await rows(database, "SELECT command_id FROM inbox")) == 1


async def test_a_recorded_command_whose_key_went_is_parked_at_once_and_says_which_ring(
    fresh_environment: Environment, database: Database
) -> None:
    envelope = a_change(uuid4(), with_ring("gateway", "onboarding", LATER))
    async with database.transaction() as connection:
        command = new_command(envelope, None, keep_for_ever=False)
        await inbox_acceptance.accept(connection, command, None, lease=False)

    async def parked() -> str | None:
        [row] = await rows(database, "SELECT parked_because, attempts FROM inbox")
        return f"{row.parked_because} {row.attempts}" if row.parked_because else None

    async with carrying_out(fresh_environment, {UPDATE_PERSON.name: Service()}):
        because = await until(parked)

    assert because == "A sealed value cannot be opened: its key later is not on the ring. 1"
