"""The same event once more: not because it was published twice, but when its subscriber asks for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from tests.e2e.webhooks.conftest import Cast
from tests.support.dispatcher_tables import DispatcherTables
from tests.support.event_bus import EventBus, made_up_events
from tests.support.live import Live
from tests.support.receivers import Received, Receiver, receiver, replies
from tests.support.subscribers import CUSTOMER, Subscriber, subscribed
from tests.support.waiting import eventually

FAILING = 8


async def test_an_event_that_is_published_twice_is_delivered_once(
    live: Live, cast: Cast, bus: EventBus
) -> None:
    (last,) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
    async with (
        receiver() as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER, target="/mine") as mine,
        subscribed(cast.partner, endpoint, target="/partner") as partners,
    ):
        await live.bank.deposit(cast.account_id, Decimal("1.00"))
        (event,) = await mine.heard_types("transaction.created")
        message = await bus.message(event["id"])
        await bus.again([message, message])
        # Events are recorded in their order: when this one is there, the others were taken too.
        await bus.publish([last])
        for subscriber in (mine, partners):
            await subscriber.is_over(2)

            assert Counter(subscriber.ids) == Counter([event["id"], last.event_id])


async def test_what_is_resent_twice_is_delivered_twice_to_that_subscription(
    cast: Cast, bus: EventBus
) -> None:
    (event,) = made_up_events(1, cast.partner.key.tenant, cast.customer_id)
    async with (
        receiver() as endpoint,
        subscribed(cast.customer, endpoint, prefix=CUSTOMER, target="/mine") as mine,
        subscribed(cast.partner, endpoint, target="/partner") as partners,
    ):
        await bus.publish([event])
        (delivery,) = await mine.is_over(1)
        resend = f"{mine.one}/deliveries/{delivery['delivery_id']}/resend"
        keyed = [await cast.customer.post(resend, {}, key) for key in ("one", "one", "two")]
        over = await mine.is_over(3)
        heard = await mine.heard(3)

        assert [answer.is_replayed for answer in keyed] == [False, True, False]
        assert {d["delivery_id"] for d in over} == {
            *(answer.data["delivery_id"] for answer in keyed),
            delivery["delivery_id"],
        }
        assert [e["id"] for e in heard] == [event.event_id] * 3
        assert {request.body for request in mine.requests} == {event.body}
        await partners.is_over(1)
        assert partners.ids == [event.event_id]


async def failed_for_good(
    subscriber: Subscriber, tables: DispatcherTables, count: int
) -> list[str]:
    """The ids of so many failed events, once what waits for an attempt has had its last."""

    async def failed() -> list[str]:
        await tables.last_attempts_are_due(subscriber.subscription_id)
        found = [d["event_id"] for d in await subscriber.deliveries(status="failed")]
        assert len(found) == count, len(found)
        return found

    return await eventually(f"{count} events failed", failed)


def refuse(endpoint: Receiver, ids: set[str]) -> None:
    """From now on these events are answered 500, all others 200."""

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        status = 500 if request.headers["webhook-id"] in ids else 200
        await replies(status)(request, writer)

    endpoint.answer = answer


async def test_recover_delivers_each_failed_event_once_also_while_new_ones_fail(
    cast: Cast, bus: EventBus, tables: DispatcherTables
) -> None:
    since = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    events = made_up_events(3 * FAILING, cast.partner.key.tenant, cast.customer_id)
    old, new, good = (
        [event.event_id for event in events[n * FAILING : (n + 1) * FAILING]] for n in range(3)
    )
    async with (
        receiver() as endpoint,
        subscribed(cast.customer, endpoint, "person", prefix=CUSTOMER) as mine,
    ):
        refuse(endpoint, {*old, *new})
        await bus.publish(events[:FAILING])
        assert sorted(await failed_for_good(mine, tables, FAILING)) == sorted(old)
        attempts = Counter(mine.ids)
        refuse(endpoint, set(new))
        scheduled, *_ = await asyncio.gather(
            mine.do("recover", {"since": since}), bus.publish(events[FAILING:])
        )
        twice = await mine.do("recover", {"since": since})
        assert set(await failed_for_good(mine, tables, 2 * FAILING)) == {*old, *new}
        recovered = Counter(mine.ids) - attempts
        refuse(endpoint, set())
        later = [await mine.do("recover", {"since": since}) for _ in range(2)]
        over = await mine.is_over(5 * FAILING)

        assert (scheduled, twice) == ({"scheduled": FAILING}, {"scheduled": 0})
        assert {event_id: recovered[event_id] for event_id in old} == dict.fromkeys(old, 1)
        assert {event_id: recovered[event_id] for event_id in good} == dict.fromkeys(good, 1)
        assert later == [{"scheduled": FAILING}, {"scheduled": 0}]
        succeeded = Counter(d["event_id"] for d in over if d["status"] == "succeeded")
        assert succeeded == Counter([*old, *new, *good])
