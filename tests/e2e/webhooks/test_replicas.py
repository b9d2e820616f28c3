"""Two dispatchers on one database: nothing twice, nothing missed, whoever is at it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest_asyncio

from deploy.local.ports import LOOPBACK
from tests.e2e.webhooks.conftest import Cast
from tests.support.api import Api
from tests.support.event_bus import EventBus, made_up_events
from tests.support.live import Live
from tests.support.pace import pace
from tests.support.ports import free_ports
from tests.support.receivers import receiver
from tests.support.stack import ServiceProcess
from tests.support.subscribers import PARTNER, Gate, Subscriber, listed_events, subscribed
from tests.support.waiting import eventually

SUBSCRIPTIONS = 4
WAVES = 3
WAVE = 40
EVENTS = WAVES * WAVE
SLOTS = 8
"""Deliveries that one dispatcher has under way at most."""


@pytest_asyncio.fixture
async def replicas(live: Live) -> AsyncIterator[list[ServiceProcess]]:
    first = live.stack.services["webhook_dispatcher"]
    settings = {
        **first.settings,
        "BANKSIDE_WEBHOOK_DISPATCHER_ADMIN_PORT": str(free_ports(1)[0]),
        "BANKSIDE_WEBHOOK_DISPATCHER_SLOTS": str(SLOTS),
    }
    log = live.stack.folder / "webhook_dispatcher-2.log"
    second = ServiceProcess(first.module, settings, log)
    await live.stack.restart("webhook_dispatcher", BANKSIDE_WEBHOOK_DISPATCHER_SLOTS=str(SLOTS))
    await second.start()
    yield [first, second]
    await second.stop()
    await live.stack.restart("webhook_dispatcher")


async def attempts_made(live: Live, replica: ServiceProcess) -> float:
    async with live.session.get(f"http://{LOOPBACK}:{replica.admin_port}/metrics") as response:
        metrics = await response.text()
    found = re.findall(r"^bankside_webhook_attempts_total{.*} (.*)$", metrics, re.MULTILINE)
    return sum(map(float, found))


async def polled(api: Api, after: str, count: int) -> list[str]:
    """The ids of the next so many events, as a reader sees them that polls as fast as it can."""
    seen: list[str] = []
    async with asyncio.timeout(30 * pace()):
        while len(seen) < count:
            found, _ = await listed_events(
                api, PARTNER, after=seen[-1] if seen else after, limit=17
            )
            seen += [event["id"] for event in found]
    return seen


async def waits_for_nothing(subscriber: Subscriber) -> bool:
    return not await subscriber.deliveries(status="pending")


async def test_two_replicas_deliver_each_event_once_to_each_and_a_reader_misses_none(
    live: Live, replicas: list[ServiceProcess], cast: Cast, bus: EventBus
) -> None:
    events = made_up_events(EVENTS, cast.partner.key.tenant, cast.customer_id)
    ids = [event.event_id for event in events]
    async with receiver() as endpoint, AsyncExitStack() as opened:
        subscribers = [
            await opened.enter_async_context(
                subscribed(cast.partner, endpoint, "person", target=f"/{n}")
            )
            for n in range(SUBSCRIPTIONS)
        ]
        (first, *_) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
        await bus.publish([first])
        for subscriber in subscribers:
            await subscriber.is_over(1)

        gate = Gate()
        endpoint.answer = gate.answer

        async def publish() -> None:
            for n in range(WAVES):
                await bus.publish(events[n * WAVE : (n + 1) * WAVE])

        async def both_deliver() -> bool:
            return gate.waiting > SLOTS

        async def open_gate() -> None:
            await eventually("more is under way than one of them may have", both_deliver)
            gate.opened.set()

        seen, *_ = await asyncio.gather(
            polled(cast.partner, first.event_id, EVENTS), publish(), open_gate()
        )

        async def all_came() -> bool:
            return all(len(subscriber.requests) >= 1 + EVENTS for subscriber in subscribers)

        await eventually("everything is delivered", all_came, 40)
        for subscriber in subscribers:
            await eventually("nothing waits", partial(waits_for_nothing, subscriber))
            assert Counter(subscriber.ids) == Counter([first.event_id, *ids])
        assert sorted(seen) == sorted(ids)

        async def all_are_counted() -> bool:
            # The sum may be more: an earlier test's delivery may have been due again.
            worked = [await attempts_made(live, replica) for replica in replicas]
            return min(worked) > 0 and sum(worked) >= SUBSCRIPTIONS * (1 + EVENTS)

        await eventually("the attempts of both are counted", all_are_counted)
