"""What the login of one running service can do to the database when it is stolen: rows of its own schema, no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

import asyncpg
import pytest

from deploy.local.services import ROLES
from libs.persistence.grants import APPEND_ONLY, LOCKED_ONLY
from tests.support.infrastructure import Environment

FOREIGN = {service: "payments" if service == "gateway" else "gateway" for service in ROLES}
OWN_TABLE = {
    service: next(iter(import_module(f"services.{service}.tables").metadata.tables))
    for service in ROLES
}
LIMITED = [
    (service, table.name, grants)
    for service in ROLES
    for table, grants in getattr(import_module(f"services.{service}.tables"), "LIMITED", {}).items()
    if grants != LOCKED_ONLY
]
DDL = (
    "CREATE TABLE stolen (secret text)",
    "CREATE TEMPORARY TABLE stolen (secret text)",
    "CREATE SCHEMA stolen",
    "CREATE FUNCTION stolen() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.stolen (secret text)",
    "ALTER TABLE {own} ADD COLUMN stolen text",
    "ALTER TABLE {own} DISABLE TRIGGER ALL",
    "ALTER TABLE {own} OWNER TO {service}",
    "CREATE INDEX stolen ON {own} ((1))",
    "TRUNCATE {own}",
    "DROP TABLE {own} CASCADE",
    "DROP SCHEMA {service} CASCADE",
    "UPDATE alembic_version SET version_num = '0001'",
    "SET ROLE {service}_owner",
    "SET SESSION AUTHORIZATION {service}_owner",
    "SET session_replication_role = replica",
    "ALTER ROLE {service} CREATEROLE",
    "ALTER ROLE {service}_owner PASSWORD 'known'",
    "GRANT {service}_owner TO {service}",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "SELECT pg_read_file('/etc/passwd')",
)
ELSEWHERE = (
    "SELECT * FROM {foreign}.{table}",
    "DELETE FROM {foreign}.{table}",
    "CREATE TABLE {foreign}.stolen (secret text)",
    "SET ROLE {foreign}",
)
HOSTILE_DAYS = (
    ("make_day_partition", "event", 401),
    ("make_day_partition", "event", -401),
    ("make_day_partition", "delivery", 0),
    ("make_day_partition", "event; DROP TABLE delivery", 0),
    ("make_day_partition", "event", None),
    ("make_day_partition", None, 0),
    ("drop_day_partition", "event", -30),
    ("drop_day_partition", "attempt", -30),
    ("drop_day_partition", "attempt", 1),
    ("drop_day_partition", "delivery", -31),
    ("drop_day_partition", "attempt", None),
    ("drop_day_partition", None, -31),
)
"""The day: so many after today, by the database's clock."""
PRESENT = "floor(extract(epoch FROM clock_timestamp()) / 600)::bigint * 600"
KEEP = f"SELECT gateway.keep_nonce_partitions({PRESENT} + $1::int, {PRESENT} + $2::int)"
DAY = 86_400
HOSTILE_BOUNDS = (
    (-599, 601),
    (-600, 1),
    (600, 1200),
    (DAY, DAY),
    (-10_000 * DAY, 0),
    (-600, 3 * 3600),
    (-600, -1200),
    (-2 * DAY, 0),
    (None, 0),
    (-600, None),
)
"""Floor and ceiling: so many seconds after the beginning of the present partition."""


@asynccontextmanager
async def logged_in(environment: Environment, role: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(environment.database_urls[role])
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def undone(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """The environment is shared: what should have been refused is taken back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


async def is_refused(connection: asyncpg.Connection, statement: str, *values: object) -> bool:
    """For lack of a privilege, and for no other reason."""
    async with undone(connection):
        try:
            await connection.execute(statement, *values)
        except asyncpg.InsufficientPrivilegeError:
            return True
        return False


@pytest.mark.parametrize("service", ROLES)
async def test_a_service_defines_nothing_and_grants_nothing(
    environment: Environment, service: str
) -> None:
    names = {"service": service, "foreign": FOREIGN[service], "own": OWN_TABLE[service]}

    async with logged_in(environment, service) as connection:
        carried_out = [
            statement
            for statement in (template.format(**names) for template in DDL)
            if not await is_refused(connection, statement)
        ]

    assert carried_out == []


@pytest.mark.parametrize("service", ROLES)
async def test_a_service_has_no_way_into_the_schema_of_another(
    environment: Environment, service: str
) -> None:
    others = [{"foreign": other, "table": OWN_TABLE[other]} for other in ROLES if other != service]

    async with logged_in(environment, service) as connection:
        carried_out = [
            statement
            for statement in (
                template.format(**names) for template in ELSEWHERE for names in others
            )
            if not await is_refused(connection, statement)
        ]

    assert carried_out == []


@pytest.mark.parametrize("service", ROLES)
async def test_a_service_and_its_owner_connect_to_their_database_alone(
    environment: Environment, service: str
) -> None:
    for role in (service, f"{service}_owner"):
        url = environment.database_urls[role]
        for database in ("postgres", "template1"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await asyncpg.connect(url.replace(f"/{environment.database}", f"/{database}"))


@pytest.mark.parametrize(("service", "table", "grants"), LIMITED)
async def test_what_is_history_is_neither_changed_nor_removed(
    environment: Environment, service: str, table: str, grants: frozenset[str]
) -> None:
    declared = import_module(f"services.{service}.tables").metadata.tables[table]
    column = next(c.name for c in declared.c if c.identity is None and c.computed is None)
    statements = [
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"TRUNCATE {table} CASCADE",
        f"DROP TABLE {table} CASCADE",
        f"SELECT FROM {table} FOR UPDATE",
        f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
    ]
    if grants != APPEND_ONLY:
        statements.append(f"INSERT INTO {table} DEFAULT VALUES")

    async with logged_in(environment, service) as connection:
        carried_out = [
            statement for statement in statements if not await is_refused(connection, statement)
        ]

    assert carried_out == []


async def test_a_partition_is_reached_through_its_table_only(environment: Environment) -> None:
    async with logged_in(environment, "webhook_dispatcher") as connection, undone(connection):
        for table in ("event", "attempt"):
            today = await connection.fetchval("SELECT timezone('UTC', clock_timestamp())::date")
            await connection.execute("SELECT make_day_partition($1, $2)", table, today)
            partition = f"{table}_{today:%Y%m%d}"
            for statement in (f"SELECT FROM {partition}", f"DELETE FROM {partition}"):
                assert await is_refused(connection, statement)


@pytest.mark.parametrize(("function", "table", "days"), HOSTILE_DAYS)
async def test_the_dispatcher_makes_and_drops_no_partition_but_of_its_days(
    environment: Environment, function: str, table: str | None, days: int | None
) -> None:
    async with logged_in(environment, "webhook_dispatcher") as connection, undone(connection):
        with pytest.raises(asyncpg.InvalidParameterValueError):
            await connection.execute(
                f"SELECT {function}($1, timezone('UTC', clock_timestamp())::date + $2::int)",
                *(table, days),
            )


@pytest.mark.parametrize(("floor", "ceiling"), HOSTILE_BOUNDS)
async def test_the_gateway_moves_the_bounds_of_its_nonces_only_with_the_time(
    environment: Environment, floor: int | None, ceiling: int | None
) -> None:
    async with logged_in(environment, "gateway") as connection, undone(connection):
        with pytest.raises(asyncpg.InvalidParameterValueError):
            await connection.execute(KEEP, floor, ceiling)


async def test_the_bounds_of_nonces_are_never_lowered(environment: Environment) -> None:
    bounds = "SELECT floor, ceiling FROM nonce_bounds"
    partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'nonces'::regclass"

    async with logged_in(environment, "gateway") as connection, undone(connection):
        await connection.execute(KEEP, -600, 1200)
        before = await connection.fetchrow(bounds), await connection.fetchval(partitions)
        await connection.execute(KEEP, -3600, -1200)
        await connection.execute("SELECT drop_nonce_partitions()")
        after = await connection.fetchrow(bounds), await connection.fetchval(partitions)

    assert after == before


async def test_a_function_of_an_owner_takes_no_table_of_its_caller(
    environment: Environment,
) -> None:
    """The path on which it looks for tables is its own, not the session's."""
    async with logged_in(environment, "gateway") as connection, undone(connection):
        await connection.execute("SET LOCAL search_path = public")
        await connection.execute(KEEP, -600, 600)

        ceiling = await connection.fetchval("SELECT ceiling FROM gateway.nonce_bounds")

    assert ceiling > 0
