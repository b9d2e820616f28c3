"""Recovering: every event that failed or was held in a time, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import Invalid
from tests.integration.webhooks.api.desk import Desk

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOUR = timedelta(hours=1)


async def recovered(desk: Desk, subscription_id: str, since: datetime, **more: Any) -> int:
    """How many events were scheduled."""
    done = await desk.ask(
        table.RECOVER_SUBSCRIPTION,
        desk.customer,
        subscription_id=subscription_id,
        since=since,
        **more,
    )
    return int(done["scheduled"])


async def failed_event(desk: Desk, subscription_id: str, at: datetime) -> str:
    """The id of an event whose delivery failed for good at this time."""
    event_id = await desk.record()
    await desk.conclude(await desk.delivery_of(event_id, subscription_id), "failed", at=at)
    return event_id


async def pending(desk: Desk, subscription_id: str) -> Counter[str]:
    """Events by how often they are on their way."""
    found = await desk.deliveries(subscription_id, status="pending", limit=100)
    return Counter(delivery["event_id"] for delivery in found)


async def test_what_failed_in_the_time_is_delivered_once_more_and_nothing_else(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    before = await failed_event(desk, subscription_id, now - 3 * HOUR)
    failed = [await failed_event(desk, subscription_id, now - 2 * HOUR) for _ in range(3)]
    after = await failed_event(desk, subscription_id, now - HOUR)
    succeeded = await desk.record()
    await desk.conclude(
        await desk.delivery_of(succeeded, subscription_id), "succeeded", at=now - 2 * HOUR
    )

    window = {"since": now - 2.5 * HOUR, "until": now - 1.5 * HOUR}
    scheduled = await recovered(desk, subscription_id, **window)
    again = await recovered(desk, subscription_id, **window)

    assert scheduled == 3
    assert await pending(desk, subscription_id) == Counter(failed)
    assert again == 0
    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 2
    assert await pending(desk, subscription_id) == Counter([before, *failed, after])


async def test_an_event_that_failed_several_times_is_delivered_once(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await failed_event(desk, subscription_id, now - 3 * HOUR)
    (delivery,) = await desk.deliveries(subscription_id)
    for _ in range(2):
        again = await desk.ask(
            table.RESEND_DELIVERY,
            desk.customer,
            subscription_id=subscription_id,
            delivery_id=delivery["delivery_id"],
        )
        await desk.conclude(again["delivery_id"], "failed", at=now - HOUR)

    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1
    assert await pending(desk, subscription_id) == Counter([event_id])


async def test_what_arrived_since_is_not_delivered_again(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await failed_event(desk, subscription_id, now - 3 * HOUR)
    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1
    await desk.conclude(await desk.delivery_of(event_id, subscription_id), "succeeded")

    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 0
    assert await pending(desk, subscription_id) == Counter()


async def test_what_failed_again_since_is_recovered_again(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await failed_event(desk, subscription_id, now - 3 * HOUR)
    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1
    await desk.conclude(await desk.delivery_of(event_id, subscription_id), "failed")

    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1
    assert await pending(desk, subscription_id) == Counter([event_id])


async def test_what_was_held_while_unavailable_is_delivered_with_what_failed(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    failed = await failed_event(desk, subscription_id, now)
    await desk.set_status(subscription_id, "unavailable")
    held = [await desk.record() for _ in range(2)]
    await desk.ask(
        table.UPDATE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id, status="active"
    )
    assert await pending(desk, subscription_id) == Counter()

    assert await recovered(desk, subscription_id, now - HOUR) == 3
    assert await pending(desk, subscription_id) == Counter([failed, *held])
    assert await desk.deliveries(subscription_id, status="held") == []


async def test_a_redelivery_that_is_held_is_the_one_that_is_sent(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await failed_event(desk, subscription_id, now - 3 * HOUR)
    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1
    await desk.hold(subscription_id)

    window = {"since": now - 4 * HOUR, "until": now - 2 * HOUR}
    assert await recovered(desk, subscription_id, **window) == 1
    assert await pending(desk, subscription_id) == Counter([event_id])


async def resent(desk: Desk, subscription_id: str, delivery_id: str) -> str:
    """The id of one more delivery of the same event."""
    again = await desk.ask(
        table.RESEND_DELIVERY,
        desk.customer,
        subscription_id=subscription_id,
        delivery_id=delivery_id,
    )
    return str(again["delivery_id"])


async def test_an_event_whose_first_delivery_is_on_its_way_is_not_delivered_again(
    desk: Desk,
) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await desk.record()
    first = await desk.delivery_of(event_id, subscription_id)
    await desk.conclude(await resent(desk, subscription_id, first), "failed")

    assert await recovered(desk, subscription_id, now - HOUR) == 0
    assert await pending(desk, subscription_id) == Counter([event_id])


async def test_an_event_that_arrived_by_its_first_delivery_is_not_delivered_again(
    desk: Desk,
) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    first = await desk.delivery_of(await desk.record(), subscription_id)
    await desk.conclude(await resent(desk, subscription_id, first), "failed")
    # It began before the other had failed, and ended after.
    await desk.conclude(first, "succeeded", began=now)

    assert await recovered(desk, subscription_id, now - HOUR) == 0
    assert await pending(desk, subscription_id) == Counter()


async def test_of_several_held_deliveries_of_an_event_one_is_sent(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    events = [await desk.record() for _ in range(2)]
    for event_id in events:
        first = await desk.delivery_of(event_id, subscription_id)
        await resent(desk, subscription_id, first)
    await desk.hold(subscription_id)

    assert await recovered(desk, subscription_id, now - HOUR) == 2
    assert await pending(desk, subscription_id) == Counter(events)
    assert await desk.deliveries(subscription_id, status="held") == []
    assert await recovered(desk, subscription_id, now - HOUR) == 0


async def test_what_is_held_of_an_event_that_is_on_its_way_is_not_sent_too(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    event_id = await desk.record()
    first = await desk.delivery_of(event_id, subscription_id)
    await desk.hold(subscription_id)
    await resent(desk, subscription_id, first)

    assert await recovered(desk, subscription_id, now - HOUR) == 0
    assert await pending(desk, subscription_id) == Counter([event_id])
    assert await desk.deliveries(subscription_id, status="held") == []


async def test_windows_that_follow_one_another_miss_no_failure(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    events = [await desk.record() for _ in range(2)]
    deliveries = [await desk.delivery_of(event_id, subscription_id) for event_id in events]
    first, later = deliveries
    now = datetime.now(UTC)

    assert await recovered(desk, subscription_id, now - 2 * HOUR, until=now) == 0
    # The last attempt of the one began in the first window, and is recorded in the next. The other is recorded in the
    # first, and committed after it.
    await desk.conclude(first, "failed", began=now - HOUR)
    await desk.conclude(later, "failed", at=now - timedelta(seconds=5))

    assert await recovered(desk, subscription_id, now) == 2
    assert await pending(desk, subscription_id) == Counter(events)


async def test_what_was_on_its_way_when_it_was_held_is_recovered_by_the_time_of_that(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    asked = {"subscription_id": subscription_id}
    event_id = await desk.record()
    # An attempt that is under way while it is held would leave it to be tried again.
    await desk.database.execute(
        "UPDATE delivery SET due_at = now() + interval '1 hour' WHERE subscription_id = $1",
        UUID(subscription_id),
    )
    since = datetime.now(UTC)

    await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked, status="disabled")
    await desk.set_status(subscription_id, "unavailable")
    await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked, status="active")

    assert await recovered(desk, subscription_id, datetime.now(UTC)) == 0
    assert await recovered(desk, subscription_id, since) == 1
    assert await pending(desk, subscription_id) == Counter([event_id])


async def test_two_recoveries_at_once_do_not_double_also_while_new_events_fail(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    failed = [await failed_event(desk, subscription_id, now - HOUR) for _ in range(20)]

    async def go_on_failing() -> list[str]:
        return [await failed_event(desk, subscription_id, now - HOUR) for _ in range(10)]

    async def recover_often() -> list[int]:
        since = now - 2 * HOUR
        return await asyncio.gather(*(recovered(desk, subscription_id, since) for _ in range(4)))

    scheduled, later = await asyncio.gather(recover_often(), go_on_failing())
    rest = await recovered(desk, subscription_id, now - 2 * HOUR)

    assert sum(scheduled) + rest == 30
    assert await pending(desk, subscription_id) == Counter([*failed, *later])


async def test_more_than_one_batch_is_recovered_whole(desk: Desk) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    await failed_event(desk, subscription_id, now - HOUR)
    await desk.database.execute(
        """
        WITH copies AS (
            SELECT n, gen_random_uuid() AS event_id, gen_random_uuid() AS delivery_id FROM generate_series(1, 5000) AS n
        ), events AS (
            INSERT INTO event SELECT e.day, c.event_id, e.position, e.tenant, e.customer_id, e.type, e.resource_id,
                e.sequence, e.body, e.recorded_at
            FROM event e, copies c WHERE e.tenant = $1
        )
        INSERT INTO attempt SELECT a.day, c.delivery_id, 1, a.subscription_id, a.event_day, c.event_id, a.event_type,
            a.delivery_created_at, a.concluded, a.attempted_at, 1, 500, NULL, NULL, a.concluded_at
        FROM attempt a, copies c WHERE a.subscription_id = $2::text::uuid AND a.concluded IS NOT NULL
        """,
        *(desk.tenant, subscription_id),
    )

    assert await recovered(desk, subscription_id, now - 2 * HOUR) == 5001
    assert await recovered(desk, subscription_id, now - 2 * HOUR) == 0
    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id)


async def test_since_is_no_earlier_than_what_is_kept(desk: Desk) -> None:
    subscription_id = await desk.subscribe()

    with pytest.raises(Invalid) as refusal:
        await recovered(desk, subscription_id, datetime.now(UTC) - timedelta(days=30, minutes=1))

    assert [error["loc"] for error in refusal.value.errors] == [["body", "since"]]
    assert await recovered(desk, subscription_id, datetime.now(UTC) - timedelta(days=29)) == 0


async def test_events_beyond_the_retention_are_not_recovered_while_another_delivery_keeps_them(
    desk: Desk,
) -> None:
    subscription_id, now = await desk.subscribe(), datetime.now(UTC)
    keeping = await desk.subscribe()
    held, failed, failed_of_today = [
        await failed_event(desk, subscription_id, now - 3 * HOUR) for _ in range(3)
    ]
    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 3
    redelivered = [await desk.delivery_of(event, subscription_id) for event in (failed, held)]
    await desk.conclude(redelivered[0], at=now)
    await desk.conclude(await desk.delivery_of(failed_of_today, subscription_id), at=now)
    await desk.hold(subscription_id)
    await desk.move_beyond_retention(held, failed)

    assert await recovered(desk, subscription_id, now - 4 * HOUR) == 1

    assert await pending(desk, subscription_id) == Counter([failed_of_today])
    await desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, subscription_id=keeping)


async def test_a_period_that_ends_now_does_not_begin_in_the_future(desk: Desk) -> None:
    subscription_id = await desk.subscribe()
    later = datetime.now(UTC) + HOUR

    with pytest.raises(Invalid) as refusal:
        await recovered(desk, subscription_id, later)

    assert [error["loc"] for error in refusal.value.errors] == [["body", "since"]]
    assert await recovered(desk, subscription_id, later, until=later) == 0, "of the future"
