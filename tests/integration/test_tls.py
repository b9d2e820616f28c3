"""Connections to brokers, databases and providers by TLS: only to the server of a certificate that leads to the CA."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from sqlalchemy import text
from yarl import URL

from libs.contracts.errors import Unavailable
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.connection import connect
from libs.persistence.engine import Database, open_database
from libs.persistence.migrations import migrate
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from tests.support.certificates import Authority, Identity, behind_tls
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.ports import free_ports


class Certificates(NamedTuple):
    ours: Identity
    ca_file: str
    another_host: Identity
    another_ca: str


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder: Path = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    return Certificates(
        authority.identity(),
        authority.file,
        authority.identity("another-host"),
        Authority(folder, "another-ca").file,
    )


def amqps(url: str) -> str:
    return str(URL(url).with_scheme("amqps"))


async def test_the_broker_is_spoken_to_by_tls(
    environment: Environment, certificates: Certificates
) -> None:
    async with behind_tls(environment.amqp_url, certificates.ours) as url:
        connection = await connect(
            amqps(url), "tests", heartbeat_seconds=60, ca_file=certificates.ca_file
        )
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await connection.end(politely=True)

    assert queue.name


@pytest.mark.parametrize("argument", ["", "?no_verify_ssl=1"])
@pytest.mark.parametrize("what", ["another CA", "the system's CAs", "another host"])
async def test_a_broker_whose_certificate_is_not_its_own_is_not_connected_to(
    environment: Environment, certificates: Certificates, what: str, argument: str
) -> None:
    identity, ca_file = wrong(certificates, what)
    async with behind_tls(environment.amqp_url, identity) as url:
        with pytest.raises(BROKER_ERRORS, match="CERTIFICATE_VERIFY_FAILED"):
            await connect(amqps(url) + argument, "tests", heartbeat_seconds=60, ca_file=ca_file)


def wrong(certificates: Certificates, what: str) -> tuple[Identity, str | None]:
    return {
        "another CA": (certificates.ours, certificates.another_ca),
        "the system's CAs": (certificates.ours, None),
        "another host": (certificates.another_host, certificates.ca_file),
    }[what]


POOLS = [Database.driver, Database.transaction]
Pool = Callable[[Database], AbstractAsyncContextManager[object]]


@pytest.mark.parametrize("mode", ["sslmode=verify-full", "ssl=require"])
async def test_the_database_is_spoken_to_by_tls(
    environment: Environment, certificates: Certificates, mode: str
) -> None:
    async with behind_tls(environment.database_urls["onboarding"], certificates.ours) as url:
        database = open_database(f"{url}?{mode}", "tests", ca_file=certificates.ca_file)
        try:
            async with database.driver() as driver, database.transaction() as transaction:
                assert await driver.fetchval("SELECT 1") == 1
                assert (await transaction.execute(text("SELECT 1"))).scalar_one() == 1
        finally:
            await database.close()


@pytest.mark.parametrize("pool", POOLS)
async def test_a_renewed_ca_of_the_database_counts_from_the_next_connection_on(
    environment: Environment, pool: Pool, tmp_path: Path
) -> None:
    expired, renewed = Authority(tmp_path, "expired"), Authority(tmp_path, "renewed")
    ca_file = tmp_path / "database.pem"
    ca_file.write_bytes(Path(expired.file).read_bytes())
    async with behind_tls(environment.database_urls["onboarding"], renewed.identity()) as url:
        database = open_database(f"{url}?sslmode=verify-full", "tests", ca_file=str(ca_file))
        try:
            with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
                async with pool(database):
                    pytest.fail("the body is not run")

            ca_file.write_bytes(Path(renewed.file).read_bytes())

            async with pool(database):
                pass
        finally:
            await database.close()


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("what", ["another CA", "the system's CAs", "another host"])
async def test_a_database_whose_certificate_is_not_its_own_is_not_connected_to(
    environment: Environment, certificates: Certificates, pool: Pool, what: str
) -> None:
    identity, ca_file = wrong(certificates, what)
    async with behind_tls(environment.database_urls["onboarding"], identity) as url:
        database = open_database(f"{url}?sslmode=require", "tests", ca_file=ca_file)
        try:
            with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
                async with pool(database):
                    pytest.fail("the body is not run")
        finally:
            await database.close()


async def test_migrations_run_by_tls(environment: Environment, certificates: Certificates) -> None:
    async with behind_tls(environment.database_urls["payments_owner"], certificates.ours) as url:
        await migrate("payments", f"{url}?sslmode=verify-full", ca_file=certificates.ca_file)

        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            await migrate("payments", f"{url}?sslmode=verify-full")


async def answered(identity: Identity, ca_file: str | None) -> object:
    """What a provider with this certificate says."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"says": "yes"})

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    [port] = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=identity.context()).start()
    try:
        async with open_session(1, ca_file=ca_file) as session:
            client = ProviderClient("core", f"https://localhost:{port}", "t", session)
            return await client.read("get", "/", deadline=time.time() + 20 * pace())
    finally:
        await runner.cleanup()


async def test_a_provider_is_spoken_to_by_tls(certificates: Certificates) -> None:
    assert await answered(certificates.ours, certificates.ca_file) == {"says": "yes"}


@pytest.mark.parametrize("what", ["another CA", "the system's CAs", "another host"])
async def test_a_provider_whose_certificate_is_not_its_own_is_not_asked(
    certificates: Certificates, what: str
) -> None:
    with pytest.raises(Unavailable):
        await answered(*wrong(certificates, what))
