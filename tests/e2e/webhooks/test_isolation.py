"""An endpoint that hangs, with a twentieth of the traffic, costs the others next to nothing."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import UUID

import pytest_asyncio

from tests.e2e.webhooks.conftest import Cast
from tests.support.dispatcher_tables import DispatcherTables
from tests.support.event_bus import EventBus, made_up_events
from tests.support.live import Live
from tests.support.receivers import receiver
from tests.support.subscribers import Gate, Subscriber, by_target, subscribed
from tests.support.waiting import eventually

SUBSCRIPTIONS = 20
SLOTS = 64
EVENTS = 72
"""More for the endpoint that hangs than there are slots: whoever gave it all that it asks for would stand still."""
FEWEST_ROUNDS, MOST_ROUNDS = 2, 8
"""More than the fewest while what else runs on this machine may have slowed all rounds of one kind."""


@pytest_asyncio.fixture
async def few_slots(live: Live) -> AsyncIterator[None]:
    await live.stack.restart("webhook_dispatcher", BANKSIDE_WEBHOOK_DISPATCHER_SLOTS=str(SLOTS))
    yield
    await live.stack.restart("webhook_dispatcher")


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


async def test_p99_of_the_others_time_to_first_attempt_is_within_twice_that_without_it(
    few_slots: None, cast: Cast, bus: EventBus, tables: DispatcherTables, gate: Gate
) -> None:
    without, beside, hung = [], [], []
    async with (
        receiver(by_target({"/0": gate.answer})) as endpoint,
        AsyncExitStack() as opened,
    ):
        subscribers = [
            await opened.enter_async_context(
                subscribed(cast.partner, endpoint, "person", target=f"/{n}")
            )
            for n in range(SUBSCRIPTIONS)
        ]
        hanging, *others = subscribers
        for round_ in range(1, MOST_ROUNDS + 1):
            gate.opened.set()
            without.append(await p99_of_a_round(cast, bus, tables, others))
            await has_all(hanging, 2 * round_ - 1)
            gate.opened.clear()
            beside.append(await p99_of_a_round(cast, bus, tables, others))
            hung.append(gate.waiting)
            gate.opened.set()
            await has_all(hanging, 2 * round_)
            if round_ >= FEWEST_ROUNDS and min(beside) <= 2 * min(without):
                break

        # What else runs on this machine can only add to a round.
        assert min(beside) <= 2 * min(without), (without, beside)
        assert all(0 < count <= 16 for count in hung), hung


async def has_all(subscriber: Subscriber, rounds: int) -> None:
    async def has() -> bool:
        return len(subscriber.requests) >= rounds * EVENTS

    await eventually(f"{subscriber.target} has all", has)


async def p99_of_a_round(
    cast: Cast, bus: EventBus, tables: DispatcherTables, others: list[Subscriber]
) -> float:
    """Seconds from the recording of a delivery to its first attempt, of the events of this round."""
    events = made_up_events(EVENTS, cast.partner.key.tenant, cast.customer_id)
    asked = (
        [UUID(subscriber.subscription_id) for subscriber in others],
        [UUID(event.event_id.removeprefix("evt_")) for event in events],
    )

    async def waited() -> list[float]:
        rows = await tables.rows(
            "SELECT extract(epoch FROM attempted_at - delivery_created_at)::float8 AS seconds FROM attempt"
            " WHERE subscription_id = ANY($1) AND event_id = ANY($2) AND number = 1 ORDER BY 1",
            *asked,
        )
        return [row["seconds"] for row in rows] if len(rows) == len(others) * EVENTS else []

    await bus.publish(events)
    seconds = await eventually("the others have all", waited)
    return seconds[math.ceil(0.99 * len(seconds)) - 1]
