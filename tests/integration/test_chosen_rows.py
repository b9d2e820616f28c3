"""A batch is no larger with stale statistics of PostgreSQL: the rows are chosen once, before they are changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest

from libs.persistence import inbox_housekeeping
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import open_database
from services.onboarding.repository import step_retention
from services.webhook_dispatcher.repository import retention, strays
from tests.integration.statistics import statistics_of_one_row
from tests.integration.tables import execute
from tests.support.infrastructure import Environment

BATCH = 10
SUBSCRIPTION = UUID("00000000-0000-4000-8000-000000000001")
ROWS = "generate_series(1, 500)"
COMMANDS = f"""
    INSERT INTO inbox (command_id, operation, message_id, request_id, principal, body, deadline, finished_at, audited)
    SELECT gen_random_uuid(), 'o', 'm', 'r', '', '', 0, now() - interval '2 days', true FROM {ROWS}
    """
STEPS = f"""
    INSERT INTO saga_steps (saga_id, name, tenant, customer_id, operation, idempotency_key, compensation, state,
        recorded_at)
    SELECT gen_random_uuid(), 'n', 't', gen_random_uuid(), 'o', gen_random_uuid(), false, 'done',
        now() - interval '2 days' FROM {ROWS}
    """
SUBSCRIBED = f"""
    INSERT INTO subscription (id, tenant, event_type, callback_url, description, status, secret, created_at, updated_at)
    VALUES ('{SUBSCRIPTION}', 't', 'person', 'https://example.com', '', 'active', '', now(), now())
    """
DELIVERIES = f"""
    INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, held_at, due_at,
        created_at)
    SELECT gen_random_uuid(), '{SUBSCRIPTION}', 't', current_date, gen_random_uuid(), 'person.updated', 'held', now(),
        now(), now() FROM {ROWS}
    """
REDELIVERIES = f"""
    INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)
    SELECT '{SUBSCRIPTION}', gen_random_uuid(), gen_random_uuid(), now() - interval '2 days' FROM {ROWS}
    """


async def purge_steps(connection: AsyncConnection) -> int:
    return (await step_retention.purge(connection, days=1)).deleted


async def release(connection: AsyncConnection) -> int | None:
    return await strays.change(connection, SUBSCRIPTION, "active", BATCH)


async def forget(connection: AsyncConnection) -> int:
    return await retention.forget_redeliveries(connection, timedelta(days=1), BATCH)


@pytest.mark.parametrize(
    ("service", "table", "rows", "change"),
    [
        ("onboarding", "inbox", (COMMANDS,), inbox_housekeeping.purge),
        ("onboarding", "saga_steps", (STEPS,), purge_steps),
        ("webhook_dispatcher", "delivery", (SUBSCRIBED, DELIVERIES), release),
        ("webhook_dispatcher", "redelivery", (SUBSCRIBED, REDELIVERIES), forget),
    ],
)
async def test_a_batch_is_no_larger_where_statistics_know_of_one_row(
    fresh_environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    table: str,
    rows: tuple[str, ...],
    change: Callable[[AsyncConnection], Awaitable[int | None]],
) -> None:
    monkeypatch.setattr(inbox_housekeeping, "PURGE_BATCH", BATCH)
    monkeypatch.setattr(step_retention, "PURGE_BATCH", BATCH)
    database = open_database(fresh_environment.database_urls[service], "tests")
    for statement in rows:
        await execute(database, statement)

    async with (
        statistics_of_one_row(fresh_environment, f"{service}.{table}"),
        database.transaction() as connection,
    ):
        changed = await change(connection)
    await database.close()

    assert changed == BATCH
