"""`kill -9` of the dispatcher at every point of a delivery: nothing is lost, and no endpoint hears more than once more.

What a killed process had claimed is another's when its lease ends. Here it is long enough that no lease ends before all
points were hit; then the test ends them all.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest_asyncio

from libs.contracts.events import Event
from tests.support.dispatcher_tables import DispatcherTables, dispatcher_tables
from tests.support.event_bus import EventBus, event_bus, made_up_events
from tests.support.live import Live
from tests.support.receivers import receiver, replies
from tests.support.subscribers import Gate, Subscriber, by_target, subscribed
from tests.support.waiting import eventually

SERVICE = "webhook_dispatcher"
LONG_LEASE = {"BANKSIDE_WEBHOOK_DISPATCHER_DELIVERY_LEASE_SECONDS": "240"}
SENDING = {"claimed": 1, "posted": 2, "finishing": 2, "finished": 1}
"""The points of an attempt, in their order, and how often an endpoint hears of an event that was killed there."""
RECORDING = ("ingesting", "ingested")
"""Before the commit of an event, and between it and the ack."""


@pytest_asyncio.fixture
async def bus(live: Live) -> AsyncIterator[EventBus]:
    async with event_bus(live.stack.environment.amqp_url) as opened:
        yield opened


@pytest_asyncio.fixture
async def tables(live: Live) -> AsyncIterator[DispatcherTables]:
    async with dispatcher_tables(live.stack.environment) as opened:
        yield opened


async def dies_at(live: Live, point: str, bus: EventBus, *events: Event) -> None:
    """Publish what leads the dispatcher there, and start it to die there."""
    process = live.stack.services[SERVICE]
    if process.is_running:
        await process.stop()
    await bus.publish(events)
    process.spawn(BANKSIDE_CRASH_AT=f"{SERVICE}.{point}", **LONG_LEASE)
    assert await process.ended() == -signal.SIGKILL, point


async def is_over(subscriber: Subscriber, events: list[Event]) -> None:
    """Each event was delivered, by one delivery."""
    over = await subscriber.is_over(len(events))
    assert Counter(d["event_id"] for d in over) == Counter(e.event_id for e in events)
    assert {d["status"] for d in over} == {"succeeded"}


async def test_a_kill_anywhere_loses_nothing_and_costs_at_most_one_more_attempt(
    live: Live, bus: EventBus, tables: DispatcherTables
) -> None:
    partner = await live.of_tenant("webhook-faults")
    held, *others = events = made_up_events(2 + len(SENDING), partner.key.tenant, "a customer")
    gate, service = Gate(), live.stack.services[SERVICE]
    async with (
        receiver(gate.answer) as endpoint,
        subscribed(partner, endpoint, target="/killed") as mine,
    ):
        await live.stack.restart(SERVICE, **LONG_LEASE)
        await bus.publish([held])
        await mine.heard(1)
        await service.kill()  # while it waits for the answer
        gate.opened.set()
        heard = [2]
        for (point, times), event in zip(SENDING.items(), others, strict=False):
            await dies_at(live, point, bus, event)
            heard.append(times)
        for number, point in enumerate(RECORDING):
            await dies_at(live, point, bus, *others[len(SENDING) :] if not number else [])
        heard.append(1)
        leased = await tables.leases_end()
        await live.stack.restart(SERVICE)
        await is_over(mine, events)

        assert leased == 4, "held, claimed, posted, finishing"
        assert mine.ids.count(held.event_id) == 2
        expected = {e.event_id: times for e, times in zip(events, heard, strict=True)}
        assert Counter(mine.ids) == Counter(expected)
        assert len({request.body for request in mine.requests}) == len(events)
        for request in mine.requests:
            mine.verified(request)
        for delivery in await mine.deliveries():
            # What the killed process tried is known to nobody; `finished` was recorded before it died.
            assert delivery["attempts_made"] == 1


async def test_a_kill_while_giving_up_leaves_it_unavailable_with_everything_held(
    live: Live, bus: EventBus, tables: DispatcherTables
) -> None:
    partner = await live.of_tenant("webhook-faults")
    events = made_up_events(3, partner.key.tenant, "a customer")
    async with (
        receiver(by_target({"/gone": replies(410)})) as endpoint,
        subscribed(partner, endpoint, "person", target="/gone") as gone,
        subscribed(partner, endpoint, "webhook_subscription", target="/told") as told,
    ):
        await dies_at(live, "giving_up", bus, events[0])
        await tables.retries_are_due(gone.subscription_id)
        await dies_at(live, "given_up", bus, events[1])
        await live.stack.restart(SERVICE)
        await told.heard_types("webhook_subscription.unavailable")
        await bus.publish(events[2:])
        await tables.leases_end()
        await eventually("everything is held", partial(all_held, gone, 3))
        before = len(gone.requests)
        endpoint.answer = replies(200)
        await gone.change(status="active")
        recovered = await gone.do("recover", {"since": (await gone.deliveries())[-1]["created_at"]})
        await is_over(gone, events)

        assert recovered == {"scheduled": 3}
        assert sorted(gone.ids[before:]) == sorted(event.event_id for event in events)
        assert len(await told.is_over(1)) == 1


async def all_held(subscriber: Subscriber, count: int) -> bool:
    found = [d["status"] for d in await subscriber.deliveries()]
    assert found == ["held"] * count, found
    return True


async def test_a_dispatcher_whose_connections_were_cut_delivers_and_ends_when_told_to(
    live: Live, bus: EventBus
) -> None:
    partner = await live.of_tenant("webhook-faults")
    events = made_up_events(2, partner.key.tenant, "a customer")
    process = live.stack.services[SERVICE]
    superuser = await asyncpg.connect(live.stack.environment.database_urls["postgres"])
    async with receiver() as endpoint, subscribed(partner, endpoint, "person") as mine:
        await bus.publish(events[:1])
        await is_over(mine, events[:1])
        cut = await superuser.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = $1",
            f"bankside-{SERVICE}",
        )
        await superuser.close()
        await bus.publish(events[1:])
        await is_over(mine, events)
        logged = len(process.log)
        code = await process.stop()
        said = process.log[logged:]
        await live.stack.restart(SERVICE)

        assert len(cut) > 1
        assert code == 0, said
        assert "shutdown_too_slow" not in said
