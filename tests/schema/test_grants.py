"""What the login of each service may do in its schema is what its `tables.py` says, and nothing there belongs to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import asyncpg
import pytest

from deploy.local.postgres import SUPERUSER
from deploy.local.services import DATABASE, Secrets
from libs.persistence.grants import READ_WRITE
from libs.persistence.migrations import (
    migrate,
    migrate_all,
    owner_variable,
    services_with_migrations,
)
from tests.support.infrastructure import environment_urls
from tests.support.own_servers import OwnPostgres

SERVICES = services_with_migrations()
EARLIER = {"gateway": "0003", "payments": "0004", "webhook_dispatcher": "0006"}
"""The last revisions that the services' own logins ran."""
REWINDING = (
    "pg_ls_dir(text, boolean, boolean)",
    "pg_stat_file(text, boolean)",
    "pg_read_binary_file(text)",
    "pg_read_binary_file(text, bigint, bigint, boolean)",
)
"""What pg_rewind calls at the new primary; its manual lists them."""
REPLICA_PASSWORD = "of-the-standbys"

_RELATIONS = """
SELECT c.relname AS name, c.relkind::text AS kind, c.relispartition AS is_partition,
    pg_get_userbyid(c.relowner) AS owner,
    ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER',
        'MAINTAIN']) AS p WHERE c.relkind <> 'S' AND (has_table_privilege($1, c.oid, p) OR EXISTS (
            SELECT FROM pg_attribute a, aclexplode(a.attacl) acl
            WHERE a.attrelid = c.oid AND acl.privilege_type = p))
    UNION SELECT p FROM unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS p
        WHERE c.relkind = 'S' AND has_sequence_privilege($1, c.oid, p)) AS grants
FROM pg_class c WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
"""
_FUNCTIONS = """
SELECT f.proname AS name, pg_get_userbyid(f.proowner) AS owner, has_function_privilege($1, f.oid, 'EXECUTE') AS own,
    EXISTS (SELECT FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) WHERE grantee = 0) AS everyone,
    NOT f.prosecdef OR f.proconfig @> ARRAY[format('search_path=%s, pg_temp', $1::text)] AS pinned
FROM pg_proc f WHERE f.pronamespace = $1::text::regnamespace
"""
_SCHEMA = """
SELECT pg_get_userbyid(nspowner), has_schema_privilege($1, oid, 'USAGE'), has_schema_privilege($1, oid, 'CREATE')
FROM pg_namespace WHERE nspname = $1::text
"""


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def assert_granted(connection: asyncpg.Connection, service: str) -> None:
    tables = import_module(f"services.{service}.tables")
    limited = {table.name: grants for table, grants in getattr(tables, "LIMITED", {}).items()}
    owner = f"{service}_owner"

    assert tuple(await connection.fetchrow(_SCHEMA, service)) == (owner, True, False)
    relations = await connection.fetch(_RELATIONS, service)
    for relation in relations:
        expected = limited.get(relation["name"], READ_WRITE)
        if relation["kind"] == "S":
            expected = {"USAGE"}
        elif relation["is_partition"] or relation["name"] == "alembic_version":
            expected = set()
        granted = (relation["name"], relation["owner"], set(relation["grants"]))
        assert granted == (relation["name"], owner, expected)
    assert {*tables.metadata.tables} <= {relation["name"] for relation in relations}
    for function in await connection.fetch(_FUNCTIONS, service):
        assert tuple(function) == (function["name"], owner, True, False, True)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_may_do_with_its_tables_what_they_say(
    postgres: OwnPostgres, service: str
) -> None:
    async with connected(postgres.database_urls[SUPERUSER]) as connection:
        await assert_granted(connection, service)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_database_whose_services_owned_their_tables_is_upgraded(
    postgres: OwnPostgres, secrets: Secrets
) -> None:
    await postgres.postgres.create_database("earlier")
    urls = environment_urls(postgres.postgres, secrets, "earlier")
    async with connected(urls[SUPERUSER]) as connection:
        for service, revision in EARLIER.items():
            await connection.execute(f"CREATE SCHEMA {service} AUTHORIZATION {service}")
            await migrate(service, urls[service], revision)
        async with connected(urls["gateway"]) as gateway:
            await gateway.execute(
                "CREATE TABLE nonces_600 PARTITION OF nonces FOR VALUES FROM (600) TO (1200)"
            )

        for _ in range(2):
            await asyncio.to_thread(
                postgres.postgres.create_schemas, "earlier", secrets.schema_passwords()
            )
        for service in EARLIER:
            await migrate(service, urls[f"{service}_owner"])
        await asyncio.to_thread(
            postgres.postgres.create_schemas, "earlier", secrets.schema_passwords()
        )

        for service in EARLIER:
            await assert_granted(connection, service)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_standby_can_rewind_by_its_own_login_and_a_service_cannot_get_there(
    postgres: OwnPostgres, secrets: Secrets
) -> None:
    passwords = secrets.schema_passwords()
    replica = postgres.postgres.url("replica", REPLICA_PASSWORD, "postgres")
    maintenance = postgres.database_urls[SUPERUSER].replace(f"/{DATABASE}", "/postgres")
    async with connected(maintenance) as admin:
        await admin.execute(f"CREATE ROLE replica LOGIN REPLICATION PASSWORD '{REPLICA_PASSWORD}'")
        for function in REWINDING:
            await admin.execute(f"GRANT EXECUTE ON FUNCTION pg_catalog.{function} TO replica")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asyncpg.connect(replica)
        # As the file of another release would, which does not know this role.
        await admin.execute("GRANT CONNECT ON DATABASE postgres TO gateway")

        await asyncio.to_thread(postgres.postgres.create_schemas, DATABASE, passwords)

    async with connected(replica) as connection:
        assert await connection.fetchval("SELECT pg_read_binary_file('PG_VERSION')")
    for service in SERVICES:
        for role in (service, f"{service}_owner"):
            url = postgres.database_urls[role].replace(f"/{DATABASE}", "/postgres")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await asyncpg.connect(url)
    elsewhere = replica.replace("/postgres", f"/{DATABASE}")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(elsewhere)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_owner_that_is_not_let_in_ends_the_migrations_with_what_to_do(
    postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for service in SERVICES:
        url = postgres.postgres.url(f"{service}_owner", "not-the-password", DATABASE)
        monkeypatch.setenv(owner_variable(service), url)

    assert await migrate_all() == 1

    told = capsys.readouterr().err
    assert told.startswith("migrate: gateway: PostgreSQL refuses the login of BANKSIDE_GATEWAY_")
    assert "run deploy/postgres/schemas.sql" in told
    assert told.count("\n") == 1
