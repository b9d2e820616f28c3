"""While RabbitMQ lacks memory or disk, and so reads no command, callers are told at once that none was begun."""

from __future__ import annotations

import asyncio
import struct
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import BanksideError, OutcomePending, Unavailable
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.messaging import session
from libs.messaging.broker import Broker
from libs.messaging.envelope import Envelope
from libs.messaging.service_client import ServiceClient
from tests.integration.amqp_wire import Wire, wire_to
from tests.integration.readiness import is_not_ready, is_ready
from tests.integration.test_command_consumer import QUEUE, a_channel, has
from tests.integration.test_messaging import PRINCIPAL
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of
from tests.support.pace import pace
from tests.support.waiting import eventually

ENDS_SECONDS = 0.3
BASIC_QOS = struct.pack(">HH", 60, 10)
"""The session's watch asks for an answer with it."""


@pytest.fixture(autouse=True)
def _quickly_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(session, "WATCHES_PER_CHECK", 2)
    monkeypatch.setattr(session, "ANSWER_SECONDS", ENDS_SECONDS * pace())


@asynccontextmanager
async def calling(
    wire: Wire, environment: Environment
) -> AsyncIterator[tuple[ServiceClient, Broker]]:
    service_client = ServiceClient(sealer_of(environment.secrets, "gateway"))
    broker = Broker(wire.url, "gateway")
    broker.add(service_client)

    async def is_asked() -> bool:
        return wire.sent.count(BASIC_QOS) > asked

    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        asked = wire.sent.count(BASIC_QOS)
        # Seen at once: a question that is on its way when the wire blocks ends the session.
        await eventually("the session is watched", is_asked, poll_seconds=0)
        yield service_client, broker


def an_update(service_client: ServiceClient, seconds: float) -> Envelope:
    return service_client.envelope(
        UPDATE_PERSON,
        PRINCIPAL,
        UpdatePerson.model_validate({"person_id": "p"}),
        command_id=str(uuid.uuid4()),
        request_id="r",
        deadline=time.time() + seconds,
    )


async def outcome(service_client: ServiceClient, seconds: float) -> type[BanksideError]:
    with pytest.raises(BanksideError) as raised:
        await service_client.send_command(an_update(service_client, seconds))
    return raised.type


async def test_commands_are_unavailable_at_once_until_the_broker_reads_again(
    fresh_environment: Environment,
) -> None:
    amqp_url = fresh_environment.amqp_urls["gateway"]
    async with (
        a_channel(fresh_environment) as channel,
        wire_to(amqp_url) as wire,
        calling(wire, fresh_environment) as (service_client, broker),
    ):
        wire.block()
        before_it_is_known = await outcome(service_client, ENDS_SECONDS * pace())
        await eventually("it is not ready", partial(is_not_ready, broker))
        # Outlasts what would end the session otherwise: there is no condition to wait for.
        await asyncio.sleep(3 * ENDS_SECONDS * pace())
        async with asyncio.timeout(10 * pace()):
            while_it_is_blocked = await outcome(service_client, 20 * pace())

        wire.unblock()
        await eventually("it is ready", partial(is_ready, broker))
        await eventually("what was sent has arrived", partial(has, channel, QUEUE, 1))

    assert before_it_is_known is OutcomePending
    assert while_it_is_blocked is Unavailable
    assert wire.connections == 1
