"""Events are recorded once, in an order that a reader can follow, by day; old days go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from prometheus_client import REGISTRY
from sqlalchemy import text
from structlog.testing import capture_logs

from libs.contracts.events import Event
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.leadership import leadership
from services.webhook_dispatcher.engine.ingest import Ingest
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.schedule import longest_days
from services.webhook_dispatcher.engine.unavailability import Unavailability
from services.webhook_dispatcher.engine.upkeep import LEASE, TABLES, Upkeep
from services.webhook_dispatcher.repository import deliveries, partitions, recording
from services.webhook_dispatcher.repository.partitions import Partitioned, Partitions
from services.webhook_dispatcher.repository.recording import Arrival, Recorded
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.clocks import clock_off_by
from tests.support.pace import pace
from tests.support.waiting import eventually


async def have_today(rig: Rig) -> None:
    await Partitions(rig.database).ensure("event", [datetime.now(UTC).date()])


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


async def test_the_newest_deliveries_are_counted_and_paged_through_up_to_a_bound(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await have_today(rig)
    subscription = await rig.subscribe("/a")
    async with rig.database.transaction() as connection:
        await recording.record_batch(connection, arrivals(4), rig.clock())
    newest = [row.id for row in await rig.deliveries(subscription)][::-1]
    monkeypatch.setattr(deliveries, "MOST_LISTED", 3)

    async with rig.database.snapshot() as connection:
        pages = [
            await deliveries.page(connection, subscription, None, limit=2, offset=offset)
            for offset in (0, 2, 4)
        ]

    assert [total for _, total in pages] == [3, 3, 3]
    assert [[found.id for found in page] for page, _ in pages] == [newest[:2], newest[2:3], []]


async def test_a_batch_that_is_not_committed_leaves_no_gap(rig: Rig) -> None:
    await have_today(rig)
    async with rig.database.engine.connect() as connection:
        await recording.record_batch(connection, arrivals(5), rig.clock())
        await connection.rollback()

    async with rig.database.transaction() as committed:
        await recording.record_batch(committed, arrivals(1), rig.clock())

    [row] = await rig.query("SELECT position FROM event")
    assert row.position == 1


def refused_by_the_database(_: pytest.MonkeyPatch, event: Event) -> Event:
    return replace(event, resource_id="a\0b")


def refused_by_our_code(monkeypatch: pytest.MonkeyPatch, event: Event) -> Event:
    record_batch = recording.record_batch

    async def record(
        connection: AsyncConnection, events: Sequence[Arrival], at: datetime | None
    ) -> Recorded:
        if any(arrival.event == event for arrival in events):
            raise KeyError("of the test")
        return await record_batch(connection, events, at)

    monkeypatch.setattr(recording, "record_batch", record)
    return event


@pytest.mark.parametrize("refused_by", [refused_by_the_database, refused_by_our_code])
async def test_an_event_that_can_never_be_recorded_is_named_and_the_others_of_its_batch_are_recorded(
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    refused_by: Callable[[pytest.MonkeyPatch, Event], Event],
) -> None:
    ingest = Ingest(
        rig.database,
        Partitions(rig.database),
        DeliverySettings().retention,
        rig.clock,
        lambda _, __: None,
    )
    good, refused, last = an_event(1), refused_by(monkeypatch, an_event(2)), an_event(3)

    with capture_logs() as logs:
        async with asyncio.timeout(30 * pace()):
            places = await ingest.record([good, refused, last])

    assert places == {1}
    rows = await rig.query("SELECT id FROM event ORDER BY position")
    assert [f"evt_{row.id}" for row in rows] == [good.event_id, last.event_id]
    [line] = [entry for entry in logs if entry["event"] == "event_not_recorded"]
    assert refused.event_id == f"evt_{line['event_id']}"


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
        # Otherwise it is ended after some seconds without a statement, as that of a process that stopped.
        await changing.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        async with asyncio.TaskGroup() as group:
            group.create_task(record_one(rig))
            await eventually_waiting(rig)
            await rig.change(
                "UPDATE subscription SET status = 'disabled' WHERE id = :id", id=subscription
            )
            await changing.commit()

    [delivery] = await rig.deliveries(subscription)
    assert delivery.state == "held"


async def record_one(rig: Rig, day: date | None = None) -> None:
    """Of today, or of a day that has a partition."""
    [arrival] = arrivals(1)
    async with rig.database.transaction() as connection:
        await recording.record_batch(
            connection, [replace(arrival, day=day or arrival.day)], rig.clock()
        )


async def have_old_days(rig: Rig) -> date:
    """Partitions of a day beyond the retention, which is returned, and of the day after."""
    old = datetime.now(UTC).date() - timedelta(days=40)
    for table in TABLES:
        await Partitions(rig.database).ensure(table, [old, old + timedelta(days=1)])
    return old


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
    partitions, settings = Partitions(rig.database), DeliverySettings()
    unavailability = Unavailability(rig.database, partitions, settings, rig.clock, lambda: None)
    return Upkeep(
        rig.database,
        partitions,
        unavailability,
        Retention(rig.database, partitions, settings),
        lambda: None,
    )


async def test_days_beyond_retention_are_dropped_with_the_deliveries_that_are_held(
    rig: Rig,
) -> None:
    await rig.subscribe("/held", status="disabled")
    await upkeep(rig).keep()
    today, old = datetime.now(UTC).date(), await have_old_days(rig)
    await record_one(rig, old)

    await drop_before(rig, old)
    kept = await days_of(rig)
    await drop_before(rig, old + timedelta(days=1))
    dropped = await days_of(rig)

    assert min(kept) == old
    assert max(kept) == today + timedelta(days=2)
    assert min(dropped) == old + timedelta(days=1)
    assert await rig.query("SELECT 1 FROM event UNION ALL SELECT 1 FROM delivery") == []


async def test_events_of_the_days_that_are_kept_stay_and_older_ones_go(rig: Rig) -> None:
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=n) for n in (30, 31)]
    for table in TABLES:
        await Partitions(rig.database).ensure(table, days)

    await upkeep(rig).keep()

    assert min(await days_of(rig)) == today - timedelta(days=30)


@pytest.mark.parametrize("days", [31, -31], ids=["ahead", "behind"])
async def test_days_are_dropped_by_other_clocks_than_that_of_due_times(rig: Rig, days: int) -> None:
    await rig.subscribe("/held", status="disabled")
    await have_today(rig)
    await record_one(rig)
    old = datetime.now(UTC).date() - timedelta(days=40)
    for table in TABLES:
        await Partitions(rig.database).ensure(table, [old])
    rig.clock.advance(days=days)

    async def old_days_are_gone() -> bool:
        return old not in await partitions_of(rig, "event") | await partitions_of(rig, "attempt")

    async with rig.engine():
        await eventually("the old days are dropped", old_days_are_gone)

    assert len(await rig.query("SELECT 1 FROM event JOIN delivery ON event_id = event.id")) == 1


async def test_a_day_of_events_with_a_pending_delivery_is_kept_until_that_is_over(rig: Rig) -> None:
    pending = await rig.subscribe("/pending")
    await rig.subscribe("/held", status="disabled")
    old = await have_old_days(rig)
    await record_one(rig, old)
    counted = REGISTRY.get_sample_value("bankside_webhook_event_days_kept_total") or 0

    with capture_logs() as logs:
        await drop_before(rig, old + timedelta(days=1))

    kept = await rig.query("SELECT subscription_id FROM delivery JOIN event ON event.id = event_id")
    assert [row.subscription_id for row in kept] == [pending]
    assert REGISTRY.get_sample_value("bankside_webhook_event_days_kept_total") == counted + 1
    [warning] = [entry for entry in logs if entry["event"] == "event_days_kept"]
    assert warning["days"] == [old.isoformat()]
    await rig.change("DELETE FROM delivery")
    await drop_before(rig, old + timedelta(days=1))
    assert await rig.query("SELECT 1 FROM event") == []


async def test_a_pending_delivery_is_dropped_with_its_event_when_its_schedule_is_over_at_the_latest(
    rig: Rig,
) -> None:
    await rig.subscribe("/pending")
    old = await have_old_days(rig)
    await record_one(rig, old)
    longest = timedelta(days=longest_days(DeliverySettings().retry_seconds))

    await drop_before(rig, old + longest)
    kept = await rig.query("SELECT 1 FROM event JOIN delivery ON event_id = event.id")
    with capture_logs() as logs:
        await drop_before(rig, old + longest + timedelta(days=1))

    assert len(kept) == 1
    assert await rig.query("SELECT 1 FROM event UNION ALL SELECT 1 FROM delivery") == []
    [warning] = [entry for entry in logs if entry["event"] == "pending_deliveries_dropped"]
    assert warning["count"] == 1


@pytest.mark.parametrize("ahead", [0, 7200], ids=["right", "ahead"])
async def test_a_resend_that_comes_as_the_day_is_dropped_keeps_its_event(
    rig: Rig, ahead: int
) -> None:
    """Its id goes by the clock of the process that takes it, of which the database's may be ahead."""
    subscription = await rig.subscribe("/a")
    await record_one(rig, await have_old_days(rig))
    await rig.change("DELETE FROM delivery")
    [event] = await rig.query("SELECT day, id FROM event")
    with clock_off_by(-ahead):
        resent = UUID(int=int(time.time() * 1000) << 80 | 1)
        async with rig.database.transaction() as resending, asyncio.TaskGroup() as group:
            await deliveries.add_again(resending, subscription, [(resent, event.day, event.id)])
            dropping = group.create_task(drop_before(rig, event.day + timedelta(days=1)))
            await eventually("the drop waits or is over", lambda: waits_or_is_over(rig, dropping))
            await resending.commit()

    [left] = await rig.query("SELECT id FROM delivery")
    assert left.id == resent
    assert len(await rig.query("SELECT 1 FROM event")) == 1


async def waits_or_is_over(rig: Rig, task: asyncio.Task[None]) -> bool:
    return task.done() or bool(
        await rig.query(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
    )


async def drop_before(rig: Rig, first_kept: date) -> None:
    """As the upkeep does, with another first day that is kept."""
    retention = Retention(rig.database, Partitions(rig.database), DeliverySettings())
    async with leadership(rig.database, LEASE) as term:
        await retention.drop_before(first_kept, term)


async def days_of(rig: Rig) -> set[date]:
    events = await partitions_of(rig, "event")
    assert events == await partitions_of(rig, "attempt")
    return events


async def partitions_of(rig: Rig, table: Partitioned) -> set[date]:
    async with rig.database.transaction() as connection:
        return await partitions.days(connection, table)


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
