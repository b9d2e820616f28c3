"""A subscription that becomes unavailable costs the others nothing; a new URL has as much time as a new one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.contracts.errors import OutcomePending
from libs.persistence.async_engine import AsyncConnection
from services.webhook_dispatcher.engine import unavailability
from services.webhook_dispatcher.engine.health import (
    FAILED_EVENTS,
    NO_SUCCESS,
    should_become_unavailable,
)
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.handlers import subscriptions as handlers
from services.webhook_dispatcher.repository import (
    claims,
    endpoints,
    recording,
    strays,
    subscriptions,
)
from services.webhook_dispatcher.repository.endpoints import Health, OverdueDeliveries
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.webhooks.engine.rig import Rig, an_event
from tests.support.pace import pace
from tests.support.waiting import eventually


async def all_held(rig: Rig, subscription_id: UUID) -> bool:
    return {row.state for row in await rig.deliveries(subscription_id)} == {"held"}


async def test_holding_the_deliveries_of_an_unavailable_subscription_does_not_delay_the_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = await rig.subscribe("/gone", tenant="t_1")
    well = await rig.subscribe("/well", tenant="t_2")
    rig.receiver.statuses["/gone"] = 410
    holding, go_on, change = asyncio.Event(), asyncio.Event(), strays.change

    async def change_for_long(
        connection: AsyncConnection, subscription_id: UUID, status: strays.Status, most: int
    ) -> int | None:
        holding.set()
        await go_on.wait()
        return await change(connection, subscription_id, status, most)

    monkeypatch.setattr(strays, "change", change_for_long)

    async with rig.engine() as publisher:
        await publisher.publish([an_event(tenant="t_1")])
        async with asyncio.timeout(20 * pace()):
            await holding.wait()
        await publisher.publish([an_event(n, tenant="t_2") for n in range(40)])
        try:
            await eventually("the others' are recorded", lambda: made(rig, well, 40))
        finally:
            go_on.set()
        await eventually("held", lambda: all_held(rig, gone))


async def made(rig: Rig, subscription_id: UUID, attempts: int) -> bool:
    return len(await rig.attempts(subscription_id)) == attempts


SCANS = text("SELECT pg_stat_get_xact_numscans(CAST(:index AS regclass))")
OF_ALL = "delivery_of_subscription"


async def scans(connection: AsyncConnection, *indexes: str) -> list[int]:
    return [
        int((await connection.execute(SCANS, {"index": index})).scalar_one()) for index in indexes
    ]


@asynccontextmanager
async def planning(rig: Rig) -> AsyncIterator[asyncpg.Connection]:
    """A connection that may say what the planner knows of deliveries, of which there are none."""
    owner = await asyncpg.connect(rig.environment.database_urls["webhook_dispatcher_owner"])
    try:
        await owner.execute("TRUNCATE delivery")
        yield owner
    finally:
        await owner.close()


async def empty_an_index(rig: Rig, owner: asyncpg.Connection, state: str) -> None:
    """As after a large backlog of many subscriptions: the index of those in this state has more pages than rows."""
    for each in ("pending", "held"):
        await add_deliveries(rig, None, each, 5000)
    await owner.execute(
        "DELETE FROM delivery WHERE state = $1 AND id > (SELECT id FROM delivery WHERE state = $1"
        " ORDER BY id OFFSET 5 LIMIT 1)",
        state,
    )
    await owner.execute("VACUUM (ANALYZE) delivery")


@pytest.mark.parametrize(
    ("status", "indexes"),
    [("active", ["delivery_held"]), ("unavailable", ["delivery_due", "delivery_leased"])],
)
@pytest.mark.parametrize(
    "known_to_planner", ["nothing", "all", "an index with more pages than rows"]
)
async def test_strays_are_found_by_an_index_that_has_no_others(
    rig: Rig, status: strays.Status, indexes: list[str], known_to_planner: str
) -> None:
    subscription = await rig.subscribe("/a", status=status)
    is_stray, is_none = ("held", "pending") if status == "active" else ("pending", "held")
    async with planning(rig) as owner:
        if known_to_planner == "an index with more pages than rows":
            await empty_an_index(rig, owner, is_stray)
        await add_deliveries(rig, subscription, is_none, 5000)
        if known_to_planner == "all":
            await owner.execute("ANALYZE delivery")

    async with rig.database.transaction() as connection:
        assert await strays.change(connection, subscription, status, 10) == 0
        assert not await strays.any_left(connection, subscription, status)
        found = await scans(connection, *indexes, OF_ALL)

    assert found == [2] * len(indexes) + [0]


async def test_subscriptions_that_have_strays_are_found_by_an_index_that_has_no_others(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/a", status="unavailable")
    async with planning(rig) as owner:
        await empty_an_index(rig, owner, "pending")
        await add_deliveries(rig, subscription, "held", 5000)

    async with rig.database.transaction() as connection:
        assert await strays.subscriptions(connection) == []
        found = await scans(connection, "delivery_due", OF_ALL)

    assert found == [1, 0]


async def test_a_failing_endpoint_is_looked_at_once_however_much_fails_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unavailability, "LOOK_SECONDS", 3600.0)
    subscription = await rig.subscribe("/failing")
    rig.receiver.statuses["/failing"] = 500
    looks, overdue_deliveries = [], endpoints.overdue_deliveries

    async def noted(
        connection: AsyncConnection, subscription_id: UUID, **asked: Any
    ) -> OverdueDeliveries:
        looks.append(subscription_id)
        return await overdue_deliveries(connection, subscription_id, **asked)

    monkeypatch.setattr(endpoints, "overdue_deliveries", noted)

    async with rig.engine(DeliverySettings(retry_seconds=())) as publisher:
        await publisher.publish([an_event(n) for n in range(100)])
        await eventually("all have failed", lambda: made(rig, subscription, 100))
        await eventually("it was looked at", lambda: any_of(looks))

    assert looks == [subscription]


async def any_of(found: list[UUID]) -> bool:
    return bool(found)


async def test_a_success_that_is_recorded_after_the_look_keeps_the_subscription_active(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription, now = await rig.subscribe("/a"), rig.clock()
    await rig.change(
        "UPDATE endpoint SET last_success_at = :at, failing_since = :at, failed_events = 10",
        at=now - timedelta(days=6),
    )
    partitions, read = Partitions(rig.database), endpoints.read
    looks: list[UUID] = []

    async def read_before_a_success(
        connection: asyncpg.Connection, ids: Collection[UUID]
    ) -> dict[UUID, Health]:
        known = await read(connection, ids)
        await rig.change(
            "UPDATE endpoint SET last_success_at = :at, failing_since = NULL, failed_events = 0",
            at=now,
        )
        looks.extend(known)
        return known

    async def looked(times: int) -> bool:
        await making_unavailable.consider(subscription, Health(), answered_410=False)
        return len(looks) >= times

    monkeypatch.setattr(endpoints, "read", read_before_a_success)
    monkeypatch.setattr(unavailability, "LOOK_SECONDS", 0.0)
    making_unavailable = unavailability.Unavailability(
        rig.database, partitions, DeliverySettings(), rig.clock, lambda: None
    )
    looking = asyncio.create_task(making_unavailable.look_for_ever())
    try:
        # The second look begins after the first has ended.
        await eventually("looked at twice", lambda: looked(2))
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

    assert await rig.status(subscription) == "active"


async def test_endpoints_that_get_no_attempts_are_looked_at_page_by_page(rig: Rig) -> None:
    first, dead, last = sorted([await rig.subscribe(path) for path in ("/a", "/b", "/c")])
    now = rig.clock()
    await rig.change(
        "UPDATE endpoint SET last_success_at = :at, failing_since = :at, failed_events = 10"
        " WHERE subscription_id = :id",
        at=now - NO_SUCCESS,
        id=dead,
    )
    # The one succeeded lately, the other is not active.
    await rig.change(
        "UPDATE endpoint SET failing_since = :since, failed_events = 10,"
        " last_success_at = CASE WHEN subscription_id = :last THEN CAST(:since AS timestamptz) ELSE :now END"
        " WHERE subscription_id <> :dead",
        since=now - NO_SUCCESS,
        now=now,
        last=last,
        dead=dead,
    )
    await rig.change("UPDATE subscription SET status = 'disabled' WHERE id = :id", id=last)

    async def failed_after(after: UUID) -> tuple[list[UUID], UUID | None]:
        async with rig.database.driver() as connection:
            return await endpoints.failed(
                connection,
                after,
                failed_events=10,
                failing_before=now - timedelta(hours=24),
                succeeded_before=now - NO_SUCCESS,
                most=2,
            )

    assert await failed_after(UUID(int=0)) == ([dead], dead)
    assert await failed_after(first) == ([dead], last)
    assert await failed_after(dead) == ([], None)


async def test_it_is_unavailable_after_its_last_change_also_by_a_clock_that_is_behind(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/a")
    behind = rig.clock() - timedelta(hours=1)

    async with rig.database.transaction() as connection:
        await subscriptions.make_unavailable(connection, subscription, 0, behind)

    [row] = await rig.query(
        "SELECT unavailable_at > created_at AS is_later FROM subscription WHERE id = :id",
        id=subscription,
    )
    assert row.is_later


async def add_deliveries(rig: Rig, subscription_id: UUID | None, state: str, count: int) -> None:
    """Of one subscription, or each of another one."""
    await rig.change(
        "INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, held_at, due_at,"
        " created_at) SELECT gen_random_uuid(), coalesce(:id, gen_random_uuid()), 't_1', current_date,"
        " gen_random_uuid(), 'person.updated', :state, CASE WHEN :state = 'held' THEN now() END, now(), now()"
        " FROM generate_series(1, :count)",
        id=subscription_id,
        state=state,
        count=count,
    )


async def test_a_change_to_active_is_not_done_while_a_held_delivery_is_locked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "PAUSE_SECONDS", 0.0)
    subscription = await rig.subscribe("/a")
    await add_deliveries(rig, subscription, "held", 2)

    async with rig.database.driver_transaction() as recording:
        await recording.fetch("SELECT 1 FROM delivery LIMIT 1 FOR UPDATE")
        with pytest.raises(OutcomePending):
            await handlers.change_strays(rig.database, subscription, "active")
    await handlers.change_strays(rig.database, subscription, "active")

    assert {row.state for row in await rig.deliveries(subscription)} == {"pending"}


async def test_a_process_that_stops_amid_a_claim_or_a_record_holds_up_the_others_for_seconds(
    rig: Rig,
) -> None:
    async def stop_amid_claim() -> None:
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
            async with claims.claiming(rig.database) as connection:
                stopped.release()
                await go_on.wait()
                await connection.fetchval("SELECT 1")

    async def stop_amid_record() -> None:
        with pytest.raises(DBAPIError):
            async with rig.database.transaction() as connection:
                await recording.lock_positions(connection)
                stopped.release()
                await go_on.wait()
                await connection.execute(text("SELECT 1"))

    stopped, go_on = asyncio.Semaphore(0), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(stop_amid_claim())
        group.create_task(stop_amid_record())
        for _ in range(2):
            await stopped.acquire()

        # Without an error: a statement that waits for a lock is cancelled after 13.5 s.
        async with claims.claiming(rig.database), rig.database.transaction() as connection:
            await recording.lock_positions(connection)
        go_on.set()


async def test_a_new_url_of_an_old_subscription_has_five_days_for_its_first_success(
    rig: Rig,
) -> None:
    subscription = await rig.subscribe("/a")
    await rig.change("UPDATE subscription SET created_at = created_at - interval '90 days'")
    failing = Health(failing_since=rig.clock(), failed_events=FAILED_EVENTS)

    async with rig.database.transaction() as connection:
        await subscriptions.reset_endpoint(connection, subscription)
        known = await endpoints.overdue_deliveries(
            connection, subscription, due_before=rig.clock(), most=FAILED_EVENTS
        )

    soon, later = rig.clock() + timedelta(days=2), rig.clock() + NO_SUCCESS
    assert not should_become_unavailable(failing, known, soon)
    assert should_become_unavailable(failing, known, later)
