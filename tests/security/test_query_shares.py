"""One tenant's slow queries leave room for those of the others."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractConnection
from structlog.testing import capture_logs

from libs.contracts.errors import BanksideError
from libs.contracts.onboarding_operations import LIST_CUSTOMERS
from libs.contracts.principal import Family, Principal
from libs.messaging import query_consumer
from libs.messaging.broker import Broker
from libs.messaging.envelope import Envelope, EnvelopeHead, encode, raw
from libs.messaging.query_consumer import MOST_OF_A_TENANT, QueryConsumer
from libs.messaging.topology import queries_queue
from tests.security.messages import GATEWAY, replies_of
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.routes import route_to
from tests.support.waiting import eventually


@dataclass
class Desk:
    """A service that answers nothing before it is let go on."""

    administrator: AbstractConnection
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    async def answer(self, envelope: Envelope, _: str | None) -> None:
        tenant = envelope.principal.tenant
        self.begun[tenant] += 1
        await self.go_on.wait()
        self.answered[tenant] += 1

    async def refuse(self, _: EnvelopeHead, __: str | None, ___: BanksideError) -> None:
        self.refused += 1

    async def ask(self, tenant: str, count: int) -> None:
        """In one batch."""
        principal = Principal(tenant, tenant, Family.PARTNER, "sub_1")
        batch = [
            Envelope(
                id=str(uuid.uuid4()),
                message_id=str(uuid.uuid4()),
                request_id="request",
                operation=LIST_CUSTOMERS.name,
                principal=principal,
                deadline=time.time() + 60,
                body=raw({}),
            )
            for _ in range(count)
        ]
        message = Message(encode(batch), user_id=GATEWAY, reply_to=replies_of(GATEWAY))
        async with self.administrator.channel() as channel:
            await channel.default_exchange.publish(message, queries_queue("onboarding"))


@asynccontextmanager
async def consuming(
    site: Environment, desk: Desk, *, amqp_url: str | None = None
) -> AsyncIterator[QueryConsumer]:
    broker = Broker(amqp_url or site.amqp_urls["onboarding"], "onboarding")
    consumer = QueryConsumer("onboarding", desk.answer, desk.refuse)
    broker.add(consumer)
    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        yield consumer


async def holds(desk: Desk, **begun: int) -> bool:
    return desk.begun == begun


async def is_logged(logs: list[Any], event: str) -> bool:
    return any(entry["event"] == event for entry in logs)


async def test_what_a_tenant_asks_beyond_its_share_waits_and_holds_up_no_other(
    site: Environment, administrator: AbstractConnection
) -> None:
    desk = Desk(administrator)

    async def all_are_answered() -> bool:
        return desk.answered == {"t_busy": MOST_OF_A_TENANT + 100, "t_other": 10}

    async with consuming(site, desk):
        await desk.ask("t_busy", MOST_OF_A_TENANT + 100)
        await eventually("its share is taken", lambda: holds(desk, t_busy=MOST_OF_A_TENANT))
        await desk.ask("t_other", 10)
        await eventually(
            "the other is answered", lambda: holds(desk, t_busy=MOST_OF_A_TENANT, t_other=10)
        )
        desk.go_on.set()
        await eventually("all are answered", all_are_answered)

    assert desk.refused == 0


async def test_what_a_tenant_asks_beyond_what_may_wait_is_refused_at_once(
    site: Environment, administrator: AbstractConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_consumer, "WAITING_OF_A_TENANT", 20)
    desk = Desk(administrator)

    async def all_beyond_are_refused() -> bool:
        return desk.refused == 30

    async def all_others_are_answered() -> bool:
        return desk.answered == {"t_busy": MOST_OF_A_TENANT + 20, "t_other": 1}

    async with consuming(site, desk):
        await desk.ask("t_busy", MOST_OF_A_TENANT + 50)
        await eventually("30 are refused", all_beyond_are_refused)
        await desk.ask("t_other", 1)
        await eventually(
            "the other is asked", lambda: holds(desk, t_busy=MOST_OF_A_TENANT, t_other=1)
        )
        desk.go_on.set()
        await eventually("all others are answered", all_others_are_answered)


async def test_what_waited_for_a_place_when_the_session_was_lost_takes_none_away(
    site: Environment, administrator: AbstractConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_consumer, "QUERIES_AT_ONCE", 2)
    monkeypatch.setattr(query_consumer, "MOST_OF_A_TENANT", 1)
    desk = Desk(administrator)

    async def is_taken() -> bool:
        async with administrator.channel() as channel:
            queue = await channel.declare_queue(queries_queue("onboarding"), passive=True)
        return queue.declaration_result.message_count == 0

    async def all_are_answered() -> bool:
        return desk.answered >= Counter(t_1=1, t_2=1, t_3=1)

    async with (
        route_to(site.amqp_urls["onboarding"]) as route,
        consuming(site, desk, amqp_url=route.url),
    ):
        for tenant in ("t_1", "t_2"):
            await desk.ask(tenant, 1)
        await eventually("all places are taken", lambda: holds(desk, t_1=1, t_2=1))
        await desk.ask("t_3", 1)
        await eventually("the third waits for a place", is_taken)
        with capture_logs() as logs:
            route.cut()
            await eventually("there is another session", lambda: is_logged(logs, "broker_session"))
        await eventually("the third is taken again", is_taken)
        desk.go_on.set()
        await eventually("all are answered", all_are_answered)


async def test_those_that_wait_are_refused_when_the_service_stops(
    site: Environment, administrator: AbstractConnection
) -> None:
    desk = Desk(administrator)

    async with consuming(site, desk) as consumer:
        await desk.ask("t_busy", MOST_OF_A_TENANT + 7)
        await eventually("its share is taken", lambda: holds(desk, t_busy=MOST_OF_A_TENANT))
        stopping = asyncio.create_task(consumer.stop(20 * pace()))
        await eventually("those that wait are refused", lambda: has_refused(desk, 7))
        desk.go_on.set()
        await stopping

    assert desk.answered == {"t_busy": MOST_OF_A_TENANT}


async def has_refused(desk: Desk, count: int) -> bool:
    return desk.refused == count
