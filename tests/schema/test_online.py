"""Migrations while services run: what they wait for, and what becomes of one that was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import asyncpg
import pytest
import pytest_asyncio
from alembic import op
from sqlalchemy.exc import DBAPIError

from deploy.local.ports import LOOPBACK
from deploy.local.postgres import SUPERUSER
from libs.persistence import migrations
from services.payments import tables as payments
from services.webhook_dispatcher.tables import metadata
from tests.schema.test_tables import differences
from tests.support.own_servers import OwnPostgres
from tests.support.pace import pace
from tests.support.waiting import eventually

SERVICE = "webhook_dispatcher"
BEFORE = "0008"
"""The revision before one that builds indexes of partitioned tables, and alters others."""


class Interruption(Exception):
    """Of a run of migrations."""


pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def upgraded(postgres: OwnPostgres, service: str, before: str) -> AsyncIterator[str]:
    """The URL of a database with the service's tables of an earlier release."""
    server = postgres.postgres
    urls = {
        name: f"postgresql://{SUPERUSER}:{server.password}@{LOOPBACK}:{server.port}/{name}"
        for name in ("postgres", "upgraded")
    }
    administrator = await asyncpg.connect(urls["postgres"])
    try:
        await administrator.execute("CREATE DATABASE upgraded")
        await administrator.execute(f"ALTER DATABASE upgraded SET search_path = {service}")
        connection = await asyncpg.connect(urls["upgraded"])
        await connection.execute(f"CREATE SCHEMA {service}")
        await connection.close()
        await migrations.migrate(service, urls["upgraded"], before)
        yield urls["upgraded"]
        await administrator.execute("DROP DATABASE upgraded WITH (FORCE)")
    finally:
        await administrator.close()


@pytest_asyncio.fixture(loop_scope="session")
async def url(postgres: OwnPostgres) -> AsyncIterator[str]:
    async with upgraded(postgres, SERVICE, BEFORE) as of_dispatcher:
        yield of_dispatcher


@pytest_asyncio.fixture(loop_scope="session")
async def connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(url)
    try:
        yield opened
    finally:
        opened.terminate()


async def test_a_migration_that_was_interrupted_builds_anew_what_is_not_whole(
    url: str, connection: asyncpg.Connection
) -> None:
    first, second = [
        f"event_{row['day']:%Y%m%d}"
        for row in await connection.fetch(
            "SELECT current_date + n AS day, make_day_partition('event', current_date + n) FROM generate_series(0, 1) n"
        )
    ]
    await connection.execute(
        "INSERT INTO event SELECT current_date + n % 2, gen_random_uuid(), 1, 't', 'c', 'person.updated', 'r', 1, '',"
        " now() FROM generate_series(1, 4) n"
    )
    await connection.execute("ALTER TABLE subscription ADD COLUMN unavailable_at timestamptz")
    await connection.execute("CREATE INDEX event_listed ON ONLY event (position)")
    await connection.execute(f"CREATE INDEX {first}_listed ON {first} (position)")
    await connection.execute(f"ALTER INDEX event_listed ATTACH PARTITION {first}_listed")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute(
            f"CREATE UNIQUE INDEX CONCURRENTLY {second}_listed ON {second} (position)"
        )

    await migrations.migrate(SERVICE, url)

    assert await connection.fetch("SELECT 1 FROM pg_index WHERE NOT indisvalid") == []
    built = await connection.fetch(
        "SELECT tablename FROM pg_indexes WHERE tablename = ANY($1) AND indexdef LIKE '%(\"position\")'",
        [first, second],
    )
    assert sorted(row["tablename"] for row in built) == [first, second]
    await connection.execute(f"DROP TABLE {first}, {second}")
    assert await differences(url, metadata) == []


async def test_a_migration_does_not_make_services_wait_for_a_transaction_that_goes_on(
    url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(migrations, "LOCK_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(migrations, "LOCK_ATTEMPTS", 2)
    other = await asyncpg.connect(url)

    async with connection.transaction():
        await connection.execute("SELECT count(*) FROM endpoint")
        with pytest.raises(DBAPIError, match="lock timeout"):
            await migrations.migrate(SERVICE, url)
        monkeypatch.setattr(migrations, "LOCK_ATTEMPTS", 1000)
        migrating = asyncio.create_task(migrations.migrate(SERVICE, url))

        async def waits() -> bool:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return bool(await other.fetchval(waiting))

        await eventually("the migration waits", waits, poll_seconds=0.01)
        await other.execute("SELECT count(*) FROM endpoint")
    await migrating
    other.terminate()

    assert await differences(url, metadata) == []


async def test_revisions_of_wires_that_were_interrupted_before_any_statement_are_repeated(
    postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = op.execute
    left = 0

    def interrupted(statement: str) -> None:
        nonlocal left
        if not statement.startswith(("SET ", "RESET ")):
            left -= 1
            if left < 0:
                raise Interruption
        execute(statement)

    async with upgraded(postgres, "payments", "0008") as url:
        monkeypatch.setattr(op, "execute", interrupted)
        for revision in ("0009", "0010"):
            for done in count(1):
                left = done
                try:
                    await migrations.migrate("payments", url, revision)
                    break
                except Interruption:
                    continue
        left = 1000
        await migrations.migrate("payments", url)

        assert await differences(url, payments.metadata) == []
        connection = await asyncpg.connect(url)
        found = (
            "SELECT conname FROM pg_constraint WHERE conname LIKE '%_state_check' AND convalidated"
        )
        assert sorted(row["conname"] for row in await connection.fetch(found)) == [
            "wire_history_state_check",
            "wires_state_check",
        ]
        await connection.close()


async def test_a_migration_that_services_brought_into_a_deadlock_is_tried_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_PAUSE_SECONDS", 0.01)
    execute = op.execute
    deadlocks = 0

    def deadlocked_once(statement: str) -> None:
        nonlocal deadlocks
        if deadlocks == 0 and statement.startswith("CREATE INDEX CONCURRENTLY"):
            deadlocks += 1
            statement = (
                "DO $$ BEGIN RAISE 'deadlock detected' USING ERRCODE = 'deadlock_detected'; END $$"
            )
        execute(statement)

    monkeypatch.setattr(op, "execute", deadlocked_once)

    connection = await asyncpg.connect(url)
    await connection.execute("SELECT make_day_partition('event', current_date)")
    await connection.close()
    await migrations.migrate(SERVICE, url)

    assert deadlocks == 1


@pytest.mark.parametrize("before", ["CREATE INDEX CONCURRENTLY", "ALTER INDEX"])
async def test_a_partition_that_retention_drops_while_its_index_is_built_is_passed_by(
    url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    dropped, kept = [
        f"event_{row['day']:%Y%m%d}"
        for row in await connection.fetch(
            "SELECT current_date + n AS day, make_day_partition('event', current_date + n) FROM generate_series(0, 1) n"
        )
    ]
    execute = op.execute

    def while_retention_drops(statement: str) -> None:
        if statement.startswith(before) and f"{dropped}_" in statement:
            execute(f"DROP TABLE IF EXISTS {dropped}")
        execute(statement)

    monkeypatch.setattr(op, "execute", while_retention_drops)

    await migrations.migrate(SERVICE, url)

    partitions = await connection.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'event'::regclass"
    )
    assert [row["name"] for row in partitions] == [kept]
    assert await connection.fetch("SELECT 1 FROM pg_index WHERE NOT indisvalid") == []
    await connection.execute(f"DROP TABLE {kept}")
    assert await differences(url, metadata) == []


async def test_a_schema_of_a_later_release_stays_as_it_is(
    postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for service in migrations.services_with_migrations():
        monkeypatch.setenv(
            migrations.owner_variable(service), postgres.database_urls[f"{service}_owner"]
        )
    owner = await asyncpg.connect(postgres.database_urls["payments_owner"])
    newest = await owner.fetchval("SELECT version_num FROM alembic_version")
    await owner.execute("UPDATE alembic_version SET version_num = '9999'")

    try:
        assert await migrations.migrate_all() == 0
        assert await owner.fetchval("SELECT version_num FROM alembic_version") == "9999"
    finally:
        await owner.execute("UPDATE alembic_version SET version_num = $1", newest)
        await owner.close()

    lines = capsys.readouterr().out.splitlines()
    assert "migrate: onboarding is up to date" in lines
    assert (
        "migrate: payments has the schema of a later release (revision 9999), which stays as it is"
        in lines
    )


async def test_two_runs_at_once_do_not_stop_each_other(url: str) -> None:
    """One waits for the other, and the indexes that this one builds do not wait for it."""
    async with asyncio.timeout(120 * pace()):
        await asyncio.gather(*(migrations.migrate(SERVICE, url) for _ in range(2)))


async def test_what_stands_of_external_accounts_moves_to_their_own_comparison(
    postgres: OwnPostgres,
) -> None:
    async with upgraded(postgres, "reconciliation", "0008") as url:
        connection = await asyncpg.connect(url)
        await connection.execute(
            "INSERT INTO difference (comparison, key, kind, subject, ids, closed_at, closed_as, reason, closed_by)"
            " VALUES ('customers', 'c_1', 'external_account_owner', 'ext_1', '{}', NULL, NULL, NULL, NULL),"
            " ('customers', 'c_1', 'external_account_number', 'ext_2', '{}', now(), 'explained', 'moved', 'ann'),"
            " ('customers', 'c_1', 'external_account_number', 'ext_3', '{}', now(), 'disappeared', NULL, NULL),"
            " ('customers', 'c_1', 'account_status', 'acc_1', '{}', NULL, NULL, NULL, NULL)"
        )

        await migrations.migrate("reconciliation", url)

        rows = await connection.fetch("SELECT subject, comparison, key FROM difference")
        assert {row["subject"]: (row["comparison"], row["key"]) for row in rows} == {
            "ext_1": ("external_accounts", "ext_1"),
            "ext_2": ("external_accounts", "ext_2"),
            "ext_3": ("customers", "c_1"),
            "acc_1": ("customers", "c_1"),
        }
        await connection.close()
