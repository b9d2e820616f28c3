"""Commands of one subscription, or of one tenant, that wait keep no other tenant waiting."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from libs.contracts import webhook_operations as table
from services.webhook_dispatcher.handlers.batches import BATCHES_OF_TENANT_AT_ONCE
from tests.integration.webhooks.api.desk import Desk
from tests.support.pace import pace
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

MANY = 40
"""More than the dispatcher has connections."""
PROMPT_SECONDS = 8.0
"""Shorter than a statement may wait for a lock."""


@asynccontextmanager
async def locked(desk: Desk, *subscription_ids: str) -> AsyncIterator[None]:
    """Changes of the subscriptions wait, during the body."""
    url = desk.stack.environment.database_urls["webhook_dispatcher"]
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            await connection.execute(
                "SELECT 1 FROM subscription WHERE id = ANY($1) FOR UPDATE",
                [uuid.UUID(subscription_id) for subscription_id in subscription_ids],
            )
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
