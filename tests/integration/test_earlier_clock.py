"""What is deleted by its age: nothing by PostgreSQL's clock alone, nor by that of a process alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from libs.persistence import inbox_housekeeping
from libs.persistence.engine import Database, open_database
from libs.persistence.leadership import leadership
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.waiting_entries import WaitingEntries
from services.onboarding.repository import step_retention
from services.reconciliation.repository import differences, runs
from services.webhook_dispatcher.engine.retention import Retention
from services.webhook_dispatcher.engine.rules import DeliverySettings
from services.webhook_dispatcher.engine.upkeep import LEASE
from services.webhook_dispatcher.repository import retention
from services.webhook_dispatcher.repository.partitions import Partitions
from tests.integration.tables import execute, rows
from tests.support.clocks import clock_off_by
from tests.support.infrastructure import Environment

OLD_DAYS = 40
"""Older than all retentions of these rows."""
FAR = timedelta(days=400).total_seconds()
KEPT = timedelta(days=30)


@dataclass(frozen=True)
class Kept:
    """Rows that are kept for a time.

    Args:
        table: with a condition where the rows are partitions.
        added: inserts one row that is `{days}` old.
        purge: as the service does.
    """

    service: str
    table: str
    added: str
    purge: Callable[[Database], Awaitable[object]]


async def purge_commands(database: Database) -> None:
    async with database.transaction() as connection:
        await inbox_housekeeping.purge(connection)


async def purge_steps(database: Database) -> None:
    async with database.transaction() as connection:
        await step_retention.purge(connection, days=KEPT.days)


async def purge_differences(database: Database) -> None:
    async with database.transaction() as connection:
        await differences.purge(connection, KEPT.days)


async def purge_runs(database: Database) -> None:
    async with database.transaction() as connection:
        await runs.purge(connection, KEPT.days)


async def forget_redeliveries(database: Database) -> None:
    async with database.transaction() as connection:
        await retention.forget_redeliveries(connection, KEPT, 10)


async def drop_days(database: Database) -> None:
    async with leadership(database, LEASE) as term:
        settings = DeliverySettings(retention=KEPT)
        await Retention(database, Partitions(database), settings).drop(term)


async def delete_named(database: Database) -> None:
    await PostingStore(database).delete_old_named()


async def give_up_entries(database: Database) -> None:
    await WaitingEntries(database).give_up("a", KEPT)


EACH = [
    Kept(
        "onboarding",
        "inbox",
        "INSERT INTO inbox (command_id, operation, message_id, request_id, principal, body, deadline, audited,"
        " finished_at) VALUES (gen_random_uuid(), 'o', 'm', 'r', '', '', 0, true, now() - interval '{days} days')",
        purge_commands,
    ),
    Kept(
        "onboarding",
        "saga_steps",
        "INSERT INTO saga_steps (saga_id, name, tenant, customer_id, operation, idempotency_key, compensation, state,"
        " recorded_at) VALUES (gen_random_uuid(), 'n', 't', gen_random_uuid(), 'o', gen_random_uuid(), false, 'done',"
        " now() - interval '{days} days')",
        purge_steps,
    ),
    Kept(
        "reconciliation",
        "difference",
        "INSERT INTO difference (comparison, key, kind, subject, ids, closed_as, closed_at)"
        " VALUES ('c', 'k', 'k', 's', '{{}}', 'disappeared', now() - interval '{days} days')",
        purge_differences,
    ),
    Kept(
        "reconciliation",
        "run",
        "INSERT INTO run (cause, started_at, finished_at, outcome)"
        " VALUES ('schedule', now(), now() - interval '{days} days', 'complete')",
        purge_runs,
    ),
    Kept(
        "webhook_dispatcher",
        "redelivery",
        "WITH made AS (INSERT INTO subscription (id, tenant, event_type, callback_url, description, status, secret,"
        " created_at, updated_at) VALUES (gen_random_uuid(), 't', 'person', 'https://example.com', '', 'active', '',"
        " now(), now()) RETURNING id)"
        " INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)"
        " SELECT id, gen_random_uuid(), gen_random_uuid(), now() - interval '{days} days' FROM made",
        forget_redeliveries,
    ),
    Kept(
        "webhook_dispatcher",
        "pg_inherits WHERE inhparent = 'event'::regclass",
        "SELECT make_day_partition('event', (timezone('UTC', now()) - interval '{days} days')::date)",
        drop_days,
    ),
    Kept(
        "webhook_dispatcher",
        "pg_inherits WHERE inhparent = 'attempt'::regclass",
        "SELECT make_day_partition('attempt', (timezone('UTC', now()) - interval '{days} days')::date)",
        drop_days,
    ),
    Kept(
        "ledger_read",
        "posting_named",
        "INSERT INTO posting_named (account_id, provider_id, transaction_id, tx_uuid, type, settled_at, amount,"
        " is_debit, named_at) VALUES ('a', 'p', 't', gen_random_uuid(), 'wire', now(), 1, true,"
        " now() - interval '{days} days')",
        delete_named,
    ),
    Kept(
        "ledger_read",
        "waiting_entry",
        "INSERT INTO waiting_entry (account_id, position, event_id, type, object_id, occurred_at, noted_at)"
        " VALUES ('a', 1, 'e', 'transaction.created', 'o', now(), now() - interval '{days} days')",
        give_up_entries,
    ),
]
each_table = pytest.mark.parametrize("kept", EACH, ids=lambda kept: kept.table)


async def left(database: Database, kept: Kept) -> int:
    [[count]] = await rows(database, f"SELECT count(*) FROM {kept.table}")
    return int(count)


@each_table
async def test_nothing_is_deleted_by_the_clock_of_the_database_alone(
    fresh_environment: Environment, kept: Kept
) -> None:
    database = open_database(fresh_environment.database_urls[kept.service], "tests")
    before = await left(database, kept)
    await execute(database, kept.added.format(days=OLD_DAYS))

    with clock_off_by(-FAR):
        await kept.purge(database)
    by_one_clock = await left(database, kept) - before
    await kept.purge(database)
    by_both = await left(database, kept) - before
    await database.close()

    assert (by_one_clock, by_both) == (1, 0)


@each_table
async def test_nothing_is_deleted_by_the_clock_of_a_process_alone(
    fresh_environment: Environment, kept: Kept
) -> None:
    database = open_database(fresh_environment.database_urls[kept.service], "tests")
    before = await left(database, kept)
    await execute(database, kept.added.format(days=0))

    with clock_off_by(FAR):
        await kept.purge(database)
    by_one_clock = await left(database, kept) - before
    await database.close()

    assert by_one_clock == 1
