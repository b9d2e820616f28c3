"""The broker or the database dies while events pour in: when it is back, everything is delivered without more ado."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import pytest_asyncio

from deploy.local.services import SERVICES
from libs.contracts.events import Event
from tests.support.api import Api, Key, fetch_interface
from tests.support.event_bus import made_up_events, published_whatever_happens
from tests.support.infrastructure import Environment
from tests.support.own_servers import OwnPostgres, OwnRabbitMQ, own_postgres, own_rabbitmq
from tests.support.receivers import receiver
from tests.support.stack import Stack, running_stack
from tests.support.subscribers import Subscriber, subscribed
from tests.support.waiting import eventually

NEEDED = tuple(s for s in SERVICES if s.name in {"gateway", "webhook_dispatcher"})
SUBSCRIPTIONS = 3
BATCHES = 20
BATCH = 10
BACK_SECONDS = 60.0


@dataclass
class Mortal:
    """The dispatcher, and the gateway to ask it, on servers of their own."""

    stack: Stack
    partner: Api
    postgres: OwnPostgres
    rabbitmq: OwnRabbitMQ


@pytest_asyncio.fixture
async def mortal(empty_environment: Environment, tmp_path: Path) -> AsyncIterator[Mortal]:
    secrets = empty_environment.secrets
    async with AsyncExitStack() as opened:
        postgres = await opened.enter_async_context(own_postgres(empty_environment))
        rabbitmq = await opened.enter_async_context(own_rabbitmq(secrets))
        environment = empty_environment.with_urls(
            database_urls=postgres.database_urls, amqp_url=rabbitmq.amqp_url
        )
        stack = await opened.enter_async_context(running_stack(environment, tmp_path, NEEDED))
        session = await opened.enter_async_context(aiohttp.ClientSession())
        made = await stack.command("keys", "create", "--family", "partner", "--tenant", "mortal")
        key = Key(made["subscription_key"], made["secret"], made["tenant"])
        interface = await fetch_interface(session, stack.base_url)
        logs = lambda: stack.log("webhook_dispatcher")[-3000:]  # noqa: E731
        yield Mortal(stack, Api(session, stack.base_url, interface, key, logs), postgres, rabbitmq)


async def test_deliveries_drain_by_themselves_after_broker_and_database_died_under_load(
    mortal: Mortal,
) -> None:
    async with receiver() as endpoint, AsyncExitStack() as opened:
        subscribers = [
            await opened.enter_async_context(
                subscribed(mortal.partner, endpoint, "person", target=f"/{n}")
            )
            for n in range(SUBSCRIPTIONS)
        ]
        await mortal.rabbitmq.settled()
        published: list[Event] = []
        for kill in (mortal.rabbitmq.kill, mortal.postgres.kill):
            events = made_up_events(BATCHES * BATCH, mortal.partner.key.tenant, "a customer")
            published += events
            await pour(mortal, events[: len(events) // 2])
            await eventually("the load is on", partial(is_hearing, subscribers[0], events))
            kill()
            await pour(mortal, events[len(events) // 2 :])
            for subscriber in subscribers:
                await eventually(
                    "it drains", partial(has_heard_all, subscriber, events), BACK_SECONDS
                )
        expected = {event.event_id: event.body for event in published}
        for subscriber in subscribers:
            await eventually("nothing waits", partial(is_drained, subscriber), BACK_SECONDS)
            statuses = Counter(
                [
                    (delivery["event_id"], delivery["status"])
                    for page in range(1, len(published) // 100 + 2)
                    for delivery in await subscriber.deliveries(page=page)
                ]
            )

            assert statuses == Counter((event_id, "succeeded") for event_id in expected)
            assert {r.headers["webhook-id"]: r.body for r in subscriber.requests} == expected
            assert max(Counter(subscriber.ids).values()) <= 2
        for name, service in mortal.stack.services.items():
            assert service.is_running, f"{name} did not live on\n{mortal.stack.log(name)[-3000:]}"


async def pour(mortal: Mortal, events: list[Event]) -> None:
    for n in range(0, len(events), BATCH):
        batch = events[n : n + BATCH]
        await published_whatever_happens(mortal.rabbitmq.amqp_url, batch, BACK_SECONDS)


async def is_hearing(subscriber: Subscriber, events: list[Event]) -> bool:
    return len({event.event_id for event in events} & set(subscriber.ids)) >= BATCH


async def has_heard_all(subscriber: Subscriber, events: list[Event]) -> bool:
    missing = {event.event_id for event in events} - set(subscriber.ids)
    assert not missing, f"{len(missing)} events are missing"
    return True


async def is_drained(subscriber: Subscriber) -> bool:
    return not await subscriber.deliveries(status="pending")
