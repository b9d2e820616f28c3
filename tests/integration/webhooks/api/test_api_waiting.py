"""Commands of one subscription, or of one tenant, that wait keep no other tenant waiting."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.errors import NotFound
from services.webhook_dispatcher.handlers.batches import BATCHES_OF_TENANT_AT_ONCE
from tests.integration.webhooks.api.desk import Desk
from tests.support.pace import pace
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

MANY = 40
"""More than the dispatcher has connections."""
PROMPT_SECONDS = 8.0
"""Shorter than a statement may wait for a lock."""
LOCK_SUBSCRIPTIONS = "SELECT 1 FROM subscription WHERE id = ANY($1) FOR UPDATE"
LOCK_DELIVERIES = "SELECT 1 FROM delivery WHERE id = ANY($1) FOR UPDATE"


@asynccontextmanager
async def locked(desk: Desk, *ids: str, lock: str = LOCK_SUBSCRIPTIONS) -> AsyncIterator[None]:
    """Changes of the subscriptions, or of the deliveries, wait during the body."""
    url = desk.stack.environment.database_urls["webhook_dispatcher"]
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            await connection.execute(lock, [uuid.UUID(one) for one in ids])
            yield
    finally:
        await connection.close()


async def waiting_for_locks(desk: Desk) -> int:
    """Asked with the service's login: PostgreSQL tells another one nothing of what its sessions wait for."""
    connection = await asyncpg.connect(desk.stack.environment.database_urls["webhook_dispatcher"])
    try:
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bankside-webhook_dispatcher'"
                " AND datname = current_database() AND wait_event_type = 'Lock'"
            )
        )
    finally:
        await connection.close()


async def test_deliveries_go_on_while_commands_wait_on_all_their_connections(desk: Desk) -> None:
    busy, other = await desk.subscribe(), await desk.subscribe(desk.other_customer)

    async def many_wait() -> bool:
        return await waiting_for_locks(desk) > 10

    async def attempted() -> bool:
        return bool(
            await desk.rows(
                "SELECT 1 FROM attempt WHERE event_id = $1 AND subscription_id = $2",
                *(uuid.UUID(event_id.removeprefix("evt_")), uuid.UUID(other)),
            )
        )

    async with asyncio.TaskGroup() as group, locked(desk, busy):
        asked = [
            group.create_task(
                desk.ask(table.TEST_SUBSCRIPTION, desk.customer, subscription_id=busy)
            )
            for _ in range(MANY)
        ]
        await eventually("many wait", many_wait)
        event_id = await desk.record(customer_id=desk.customers[1])
        await eventually("an attempt for somebody else", attempted, PROMPT_SECONDS)

    assert len({task.result()["delivery_id"] for task in asked}) == MANY


async def drives_of_recoveries(desk: Desk) -> list[int]:
    """Of each of `MANY` recoveries of the tenant, in their order, once they are recorded."""
    rows = await desk.rows(
        "SELECT attempts FROM inbox WHERE ordering_key LIKE $1 || '/%' ORDER BY sequence",
        desk.tenant,
    )
    assert len(rows) == MANY
    return [row["attempts"] for row in rows]


async def test_recoveries_of_one_subscription_wait_for_one_another_without_a_connection(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    since = datetime.now(UTC) - timedelta(hours=1)

    async with asyncio.TaskGroup() as group, locked(desk, subscription_id):
        asked = [
            group.create_task(
                desk.ask(
                    table.RECOVER_SUBSCRIPTION,
                    desk.customer,
                    subscription_id=subscription_id,
                    since=since,
                )
            )
            for _ in range(MANY)
        ]
        attempts = await eventually("all recorded", lambda: drives_of_recoveries(desk))
        async with asyncio.timeout(PROMPT_SECONDS * pace()):
            await desk.ask(table.LIST_SUBSCRIPTIONS, desk.stranger)

    # Its wait for the lock ends after a while, and it is driven again. None of the others is.
    assert attempts[0] >= 1
    assert attempts[1:] == [0] * (MANY - 1)
    assert [task.result() for task in asked] == [{"scheduled": 0}] * MANY


async def test_recoveries_of_a_tenants_many_subscriptions_leave_connections_to_others(
    desk: Desk,
) -> None:
    subscriptions = [await desk.subscribe() for _ in range(MANY)]
    since = datetime.now(UTC) - timedelta(hours=1)

    async def waiting_once_all_were_driven() -> int:
        assert all(await drives_of_recoveries(desk))
        return await waiting_for_locks(desk)

    async with asyncio.TaskGroup() as group, locked(desk, *subscriptions):
        asked = [
            group.create_task(
                desk.ask(
                    table.RECOVER_SUBSCRIPTION, desk.customer, subscription_id=one, since=since
                )
            )
            for one in subscriptions
        ]
        waiting = await eventually("some wait, all were driven", waiting_once_all_were_driven)
        async with asyncio.timeout(PROMPT_SECONDS * pace()):
            await desk.ask(table.LIST_SUBSCRIPTIONS, desk.stranger)

    assert waiting <= BATCHES_OF_TENANT_AT_ONCE
    assert [task.result() for task in asked] == [{"scheduled": 0}] * MANY


async def test_a_change_does_not_wait_until_deliveries_have_followed_an_earlier_one(
    desk: Desk,
) -> None:
    subscription_id = await desk.subscribe()
    delivery_id = await desk.delivery_of(await desk.record(), subscription_id)

    def change(**values: str) -> Coroutine[Any, Any, Any]:
        return desk.ask(
            table.UPDATE_SUBSCRIPTION, desk.customer, subscription_id=subscription_id, **values
        )

    async def is_active() -> bool:
        asked = {"subscription_id": subscription_id}
        found = await desk.ask(table.GET_SUBSCRIPTION, desk.customer, **asked)
        return bool(found["status"] == "active")

    await change(status="disabled")
    async with asyncio.TaskGroup() as group, locked(desk, delivery_id, lock=LOCK_DELIVERIES):
        earlier = group.create_task(change(status="active"))
        await eventually("it has made its change", is_active)
        later = await change(description="mended")
        is_done = earlier.done()

    assert not is_done
    assert (later["status"], later["description"]) == ("active", "mended")
    assert [one["status"] for one in await desk.deliveries(subscription_id)] == ["pending"]


async def test_a_change_does_not_wait_until_the_deliveries_of_a_deleted_subscription_are_gone(
    desk: Desk,
) -> None:
    asked = {"subscription_id": await desk.subscribe()}
    delivery_id = await desk.delivery_of(await desk.record(), asked["subscription_id"])

    async def is_deleted() -> bool:
        return not await desk.ask(table.LIST_SUBSCRIPTIONS, desk.customer)

    async with asyncio.TaskGroup() as group, locked(desk, delivery_id, lock=LOCK_DELIVERIES):
        deletion = group.create_task(desk.ask(table.DELETE_SUBSCRIPTION, desk.customer, **asked))
        await eventually("it is deleted", is_deleted)
        with pytest.raises(NotFound):
            await desk.ask(table.UPDATE_SUBSCRIPTION, desk.customer, **asked, description="late")
        is_done = deletion.done()

    assert not is_done
