"""Events are recorded once, in an order that a reader can follow, by day; old days go."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from services.webhook_dispatcher.engine.days import Days
from services.webhook_dispatcher.engine.giving_up import GivingUp
from services.webhook_dispatcher.engine.rules import Rules
from services.webhook_dispatcher.engine.upkeep import Upkeep
from services.webhook_dispatcher.repository import partitions, recording
from services.webhook_dispatcher.repository.recording import Arrival
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.waiting import eventually


async def have_today(rig: Rig) -> None:
    await Days(rig.database).ensure("event", [datetime.now(UTC).date()])


def arrivals(count: int) -> list[Arrival]:
    found = [recording.arrival_of(an_event(n)) for n in range(count)]
    return [arrival for arrival in found if arrival is not None]


async def test_a_reader_that_goes_by_position_misses_nothing_of_concurrent_recordings(
    rig: Rig,
) -> None:
    await have_today(rig)
    seen: list[int] = []
    writing = True

    async def write(batch: list[Arrival]) -> None:
        async with rig.database.transaction() as connection:
            await recording.record_batch(connection, batch, rig.clock())

    async def read() -> None:
        while writing or len(seen) < 200:
            rows = await rig.query(
                "SELECT position FROM event WHERE position > :after ORDER BY position LIMIT 7",
                after=seen[-1] if seen else 0,
            )
            seen.extend(row.position for row in rows)

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        async with asyncio.TaskGroup() as writers:
            for _ in range(20):
                writers.create_task(write(arrivals(10)))
        writing = False

    assert seen == list(range(1, 201))


async def test_what_is_recorded_twice_at_the_same_moment_is_one_event_with_one_delivery(
    rig: Rig,
) -> None:
    await have_today(rig)
    await rig.subscribe("/a")
    batch = arrivals(20)

    async def write(part: list[Arrival]) -> None:
        async with rig.database.transaction() as connection:
            await recording.record_batch(connection, part, rig.clock())

    await asyncio.gather(write(batch), write(batch[::-1]), write(batch[5:] + batch[:5]))

    events = await rig.query("SELECT position FROM event ORDER BY position")
    assert [row.position for row in events] == list(range(1, 21))
    assert len(await rig.query("SELECT 1 FROM delivery")) == 20


async def test_a_batch_that_is_not_committed_leaves_no_gap(rig: Rig) -> None:
    await have_today(rig)
    async with rig.database.engine.connect() as connection:
        await recording.record_batch(connection, arrivals(5), rig.clock())
        await connection.rollback()

    async with rig.database.transaction() as committed:
        await recording.record_batch(committed, arrivals(1), rig.clock())

    [row] = await rig.query("SELECT position FROM event")
    assert row.position == 1


async def test_an_event_for_one_subscription_reaches_it_whatever_it_subscribes_to(rig: Rig) -> None:
    await have_today(rig)
    chosen = await rig.subscribe("/a", event_type="wire")
    await rig.subscribe("/b", event_type="*")

    async with rig.database.transaction() as connection:
        delivery_id = await recording.record(connection, an_event(), only_for=chosen)

    [delivery] = await rig.query("SELECT id, subscription_id FROM delivery")
    assert delivery == (delivery_id, chosen)
    assert delivery_id is not None
    assert delivery_id.version == 7


async def test_a_status_that_changed_under_the_position_lock_is_the_one_that_counts(
    rig: Rig,
) -> None:
    await have_today(rig)
    subscription = await rig.subscribe("/a")
    async with rig.database.transaction() as changing:
        await recording.lock_positions(changing)
        async with asyncio.TaskGroup() as group:
            group.create_task(record_one(rig))
            await eventually_waiting(rig)
            await rig.change(
                "UPDATE subscription SET status = 'disabled' WHERE id = :id", id=subscription
            )
            await changing.commit()

    [delivery] = await rig.deliveries(subscription)
    assert delivery.state == "held"


async def record_one(rig: Rig) -> None:
    async with rig.database.transaction() as connection:
        await recording.record_batch(connection, arrivals(1), rig.clock())


async def eventually_waiting(rig: Rig) -> None:
    """Until a session waits for the lock of the positions."""

    async def waits() -> bool:
        return bool(
            await rig.query(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database() AND query LIKE '%event_position%'"
            )
        )

    await eventually("a session that waits", waits)


def upkeep(rig: Rig) -> Upkeep:
    days, rules = Days(rig.database), Rules()
    giving_up = GivingUp(rig.database, days, rules, rig.clock, lambda: None)
    return Upkeep(rig.database, days, giving_up, rules.retention, rig.clock, lambda: None)


async def test_days_beyond_retention_are_dropped_with_the_deliveries_that_are_left(
    rig: Rig,
) -> None:
    await rig.subscribe("/held", status="disabled")
    keeper = upkeep(rig)
    await keeper.keep()
    today = datetime.now(UTC).date()
    await record_one(rig)

    rig.clock.advance(days=30)
    await keeper.keep()
    kept = await days_of(rig)
    rig.clock.advance(days=1)
    await keeper.keep()
    dropped = await days_of(rig)

    assert min(kept) == today
    assert min(dropped) == today + timedelta(days=1)
    assert await rig.query("SELECT 1 FROM event UNION ALL SELECT 1 FROM delivery") == []
    assert max(dropped) == rig.clock().date() + timedelta(days=2)


async def days_of(rig: Rig) -> set[date]:
    async with rig.database.transaction() as connection:
        events = await partitions.days(connection, "event")
        assert events == await partitions.days(connection, "attempt")
    return events


async def test_what_was_left_pending_of_an_unavailable_subscription_is_held_later(rig: Rig) -> None:
    await have_today(rig)
    subscription: UUID = await rig.subscribe("/a")
    await record_one(rig)
    await rig.change("UPDATE subscription SET status = 'unavailable'")

    await upkeep(rig).keep()

    assert [row.state for row in await rig.deliveries(subscription)] == ["held"]


async def test_what_was_left_of_a_deleted_subscription_is_dropped_later(rig: Rig) -> None:
    await have_today(rig)
    subscription, other = await rig.subscribe("/a"), await rig.subscribe("/b")
    await record_one(rig)
    await rig.change("UPDATE subscription SET status = 'deleted' WHERE id = :id", id=subscription)

    await upkeep(rig).keep()

    assert await rig.deliveries(subscription) == []
    assert len(await rig.deliveries(other)) == 1
