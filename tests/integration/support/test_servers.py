"""The servers that the tests stand on are real, separate and closed to one another's schemas."""

from __future__ import annotations

import asyncio

import aio_pika
import asyncpg
import pytest

from tests.support.infrastructure import Environment, Infrastructure
from tests.support.own_servers import own_postgres
from tests.support.pace import pace


async def test_a_service_cannot_read_the_schema_of_another(empty_environment: Environment) -> None:
    owner = await asyncpg.connect(empty_environment.database_urls["onboarding_owner"])
    stranger = await asyncpg.connect(empty_environment.database_urls["ledger_read"])
    try:
        await owner.execute("CREATE TABLE person (tin text)")

        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await stranger.fetch("SELECT * FROM onboarding.person")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await stranger.execute("CREATE TABLE public.person (tin text)")
    finally:
        await owner.close()
        await stranger.close()


async def test_two_environments_share_neither_tables_nor_queues(
    infrastructure: Infrastructure, empty_environment: Environment
) -> None:
    other = await asyncio.to_thread(infrastructure.create, migrated=False)
    try:
        connection = await aio_pika.connect(empty_environment.amqp_url)
        async with connection, await connection.channel() as channel:
            await channel.declare_queue("mine", exclusive=True)
            elsewhere = await aio_pika.connect(other.amqp_url)
            async with elsewhere, await elsewhere.channel() as foreign:
                with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
                    await foreign.get_queue("mine")
        assert other.database != empty_environment.database
    finally:
        await asyncio.to_thread(infrastructure.drop, other)


async def test_a_killed_postgres_comes_back_with_what_was_committed(
    empty_environment: Environment,
) -> None:
    async with own_postgres(empty_environment) as postgres:
        url = postgres.database_urls["gateway_owner"]
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

        postgres.kill()
        await connection_lost(connection)

        again = await reconnect(url)
        assert await again.fetchval("SELECT answer FROM kept") == 42
        await again.close()


async def connection_lost(connection: asyncpg.Connection) -> None:
    async with asyncio.timeout(10 * pace()):
        while not connection.is_closed():
            await asyncio.sleep(0.01)


async def reconnect(url: str) -> asyncpg.Connection:
    async with asyncio.timeout(20 * pace()):
        while True:
            try:
                return await asyncpg.connect(url, timeout=5 * pace())
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.05)
